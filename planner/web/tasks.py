"""Slow answers: computed in the background, once for all sessions, while the rest of the page is already there.

A task that nobody watches any more, because the question has changed or the tab is closed, stops. Tasks take turns, so
that a session with many questions does not keep another one waiting.
"""

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner.web.heap import trim_memory
from planner.web.session import draw_again

T = TypeVar("T")
WAITS: Final = ":material/hourglass_top:"
"""Begins what is said of an answer that is not there yet."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is.

    Attributes:
        fraction: From 0 to 1.
        words: The same as a sentence; empty before there is something to say.
    """

    fraction: float = 0.0
    words: str = ""


class Report(Protocol):
    """Takes the progress of a task, and a result that replaces the one before; that is a value which never changes."""

    def __call__(self, progress: Progress, partial: Any = None, /) -> None:
        """Publish both at once."""


Stopped: TypeAlias = Callable[[], bool]
"""Says whether to stop, with any result. Called often: here other tasks get their turn."""
Work: TypeAlias = Callable[[Report, Stopped], T]
"""Computes a result in another thread, and draws nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Times and sizes of tasks.

    Attributes:
        at_once: Tasks that work at the same time.
        kept: Finished tasks whose results are kept.
        patience_s: How long a page waits before it is drawn without a result.
        look_s: Period at which a page looks whether a result is there.
        turn_s: How long a task works while others wait.
        unwatched_s: How long nobody may ask for a task until it stops; None where it never does.
        retried: Whether a task that failed starts again when it is asked for.
    """

    at_once: int = 2
    kept: int = 64
    patience_s: float = 0.3
    look_s: float = 0.2
    turn_s: float = 2.0
    unwatched_s: float | None = 10.0
    retried: bool = False


@dataclass(eq=False)
class Task(Generic[T]):
    """A question and its answer, shared by all who ask it.

    Attributes:
        key: Names the question and all that its answer depends on.
        work: Computes the answer.
        number: Place in the order in which tasks were asked for.
        watchers: The sessions that asked for it.
        ahead: Whether no page needs it now; then it works only while no other task waits.
        asked_s: When somebody last asked, on the monotonic clock.
        state: Progress and partial result, replaced together.
        result: The answer; None before.
        error: Why there is none.
        under_way: Whether it has had a turn.
        stop: Set to stop it; a stopped task has no result.
        finished: Set when it has ended, in whatever way.
    """

    key: str
    work: Work[T]
    number: int
    watchers: frozenset[str]
    ahead: bool
    asked_s: float = field(default_factory=time.monotonic)
    state: tuple[Progress, T | None] = (Progress(), None)
    result: T | None = None
    error: BaseException | None = None
    under_way: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    @property
    def newest(self) -> T | None:
        """The result, or the partial one before."""
        return self.state[1] if self.result is None else self.result

    def value(self) -> T:
        """Return the answer of a task that has ended and was not stopped.

        Raises:
            PlannerError: There is none; any other error is raised as it was.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)  # it is raised at every visit, and would keep the frames of each
        return cast("T", self.result)

    def report(self, progress: Progress, partial: T | None = None, /) -> None:
        """Publish progress, and a partial result that replaces the one before."""
        self.state = progress, self.state[1] if partial is None else partial


class Tasks:
    """The tasks of one kind on this server.

    Args:
        limits: Their times and sizes.
        after: Called after each task, when its result is already there.
    """

    def __init__(self, limits: Limits, after: Callable[[], object] = trim_memory) -> None:
        self.limits = limits
        self._after = after
        self._tasks: OrderedDict[str, Task[Any]] = OrderedDict()
        self._waiting: list[Task[Any]] = []
        self._working: list[Task[Any]] = []
        self._last: dict[str, int] = {}
        """Number of the last turn of each session."""
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()

    def find(self, key: str) -> Task[Any] | None:
        """Return a task that was asked for and not stopped."""
        found = self._tasks.get(key)
        return None if found is None or found.stop.is_set() else found

    def ask(self, key: str, work: Work[T], watcher: str, *, ahead: bool = False) -> Task[T]:
        """Return the task of a key; it starts when there is none, or when it was stopped."""
        with self._changed:
            found: Task[T] | None = self.find(key)
            if found is None or (self.limits.retried and found.error is not None):
                found = Task(key, work, next(self._numbers), frozenset({watcher}), ahead)
                threading.Thread(target=self._run, args=(found,), daemon=True).start()
                self._tasks[key] = found
                self._waiting.append(found)
            found.watchers |= {watcher}
            found.ahead = found.ahead and ahead
            found.asked_s = time.monotonic()
            self._tasks.move_to_end(key)
            ended = [name for name, one in self._tasks.items() if one.finished.is_set() and one is not found]
            for name in ended[: max(len(self._tasks) - self.limits.kept, 0)]:
                del self._tasks[name]
            self._changed.notify_all()
        return found

    def unfinished(self) -> int:
        """Return how many tasks have not ended."""
        return sum(not one.finished.is_set() for one in tuple(self._tasks.values()))

    def leave(self, key: str, watcher: str) -> None:
        """Let a session watch a task no more; it stops when no other session does."""
        with self._changed:
            found = self.find(key)
            if found is not None and watcher in found.watchers and not found.finished.is_set():
                found.watchers -= {watcher}
                if not found.watchers:
                    found.stop.set()

    def clear(self) -> None:
        """Stop and forget all tasks."""
        with self._changed:
            for one in self._tasks.values():
                one.stop.set()
            self._tasks.clear()

    def wait(self, task: Task[Any]) -> None:
        """Wait for a task as long as a page waits; meanwhile it is asked for."""
        until_s = time.monotonic() + self.limits.patience_s
        while (left_s := until_s - time.monotonic()) > 0 and not task.finished.is_set():
            task.asked_s = time.monotonic()
            task.finished.wait(min(left_s, self.limits.look_s))

    def _is_stopped(self, task: Task[Any]) -> bool:
        """Return whether a task is stopped; what was stopped stays so, because it is half an answer."""
        most_s = self.limits.unwatched_s
        if most_s is not None and time.monotonic() - task.asked_s > most_s:
            task.stop.set()
        return task.stop.is_set()

    def _place(self, task: Task[Any]) -> tuple[bool, int, bool, int]:
        """Return the order of turns: needed now, whose sessions had no turn for longest, under way, first asked."""
        last = min((self._last.get(watcher, 0) for watcher in task.watchers), default=0)
        return task.ahead, last, not task.under_way, task.number

    def _may_work(self, task: Task[Any]) -> bool:
        """Return whether it is a task's turn; one place is kept free of what is prepared ahead."""
        if task not in self._waiting or len(self._working) >= self.limits.at_once:
            return False
        if task.ahead and sum(one.ahead for one in self._working) >= max(self.limits.at_once - 1, 1):
            return False
        return min(self._waiting, key=self._place) is task

    def _begin(self, task: Task[Any]) -> None:
        """Wait for a turn; a stopped task gets it at once, so that it can end."""
        with self._changed:
            while not self._may_work(task) and not self._is_stopped(task):
                self._changed.wait(self.limits.look_s)
            self._waiting = [one for one in self._waiting if one is not task]
            self._working.append(task)
            task.under_way = True
            self._last |= dict.fromkeys(task.watchers, next(self._numbers))

    def _end(self, task: Task[Any]) -> None:
        with self._changed:
            self._working.remove(task)
            if not self._working and not self._waiting:
                self._last.clear()
            self._changed.notify_all()

    def _pass_on(self, task: Task[Any]) -> None:
        """Let a task of other sessions, or one that a page needs sooner, have a turn."""
        with self._changed:
            others = any(task.watchers.isdisjoint(one.watchers) or one.ahead < task.ahead for one in self._waiting)
            if not others:
                return
            task.number = next(self._numbers)
            self._waiting.append(task)
        self._end(task)
        self._begin(task)

    def _run(self, task: Task[Any]) -> None:
        begun_s = 0.0

        def stopped() -> bool:
            nonlocal begun_s
            if time.monotonic() - begun_s >= self.limits.turn_s:
                self._pass_on(task)
                begun_s = time.monotonic()
            return self._is_stopped(task)

        self._begin(task)
        begun_s = time.monotonic()
        try:
            found = None if self._is_stopped(task) else task.work(task.report, stopped)
            if not self._is_stopped(task):
                task.result = found
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is asked for
            task.error = error
        finally:
            task.finished.set()
            self._after()
            self._end(task)


class Newest(Generic[T]):
    """Values that sessions share, each replaced by another one and never changed; the latest keys are kept."""

    def __init__(self, most: int) -> None:
        self._values: OrderedDict[str, T] = OrderedDict()
        self._most = most
        self._lock = threading.Lock()

    def replace(self, key: str, change: Callable[[T | None], T]) -> T:
        """Put in the place of a value, None at first, what `change` makes of it; return that."""
        with self._lock:
            self._values[key] = value = change(self._values.get(key))
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


ANSWERS: Final = Tasks(Limits())
"""What pages ask beside simulations."""


def watcher() -> str:
    """Return what Streamlit calls this session; empty where no browser is."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def watch(tasks: Tasks, asked: Sequence[Task[Any]], draw: Callable[[], None]) -> None:
    """Draw how far tasks are, again and again; draw the page again when all have ended."""

    def look() -> None:
        for one in asked:
            one.asked_s = time.monotonic()
        draw()
        if all(one.finished.is_set() for one in asked):
            draw_again()

    st.fragment(look, run_every=tasks.limits.look_s)()


def _say(words: str) -> None:
    st.caption(f"{WAITS} {words} …")


def answer(key: str, work: Work[T], words: str) -> T | None:
    """Return an answer; None while it is computed, which is said here until the page is drawn with it.

    Args:
        key: Names the question and all that its answer depends on.
        work: Computes it.
        words: What is done meanwhile.

    Raises:
        PlannerError: There is no answer.
    """
    while True:
        task = ANSWERS.ask(key, work, watcher())
        ANSWERS.wait(task)
        if not (task.finished.is_set() and task.stop.is_set()):
            break
    if not task.finished.is_set():
        watch(ANSWERS, (task,), lambda: _say(words))
        return None
    return task.value()
