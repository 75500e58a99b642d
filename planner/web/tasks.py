"""Slow answers: computed in the background, once for all sessions, while the rest of the page is already there.

A task that nobody watches any more, because the question has changed or the tab is closed, stops. Tasks take turns, so
that a session with many questions does not keep another one waiting. A thread belongs to a task from its first turn to
its end; a task that is stopped before has none.
"""

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Generic, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner.cluster.errors import PlannerError
from planner.web.heap import trim_memory
from planner.web.session import draw_again
from planner.web.task import Limits, OnDisk, Task, Work

T = TypeVar("T")
WAITS: Final = ":material/hourglass_top:"
"""Icon before the text about an answer that is not there yet."""
_LOOK_S: Final = 0.5
_LOOK_SHARE: Final = 0.1
_MOST_LOOK_S: Final = 2.0
"""A page in a browser looks at tasks after half a second, later after a tenth of what they have worked, up to two."""


def _too_many(unfinished: int) -> PlannerError:
    return PlannerError(f"{unfinished} answers are already being computed.", remedy="Wait until others finish.")


class Tasks:
    """The tasks of one kind on this server.

    Args:
        limits: Their times and sizes.
        after: Called after each task, when its result is already there.
        is_open: Returns whether the tab of a session is open: such a session watches what it has asked for. Without it
            a session watches what it asks for again and again.
        too_many: Returns the error when that many tasks have not ended and one more is asked for.
        clock: Returns the time in seconds from any moment on.
    """

    def __init__(
        self,
        limits: Limits,
        after: Callable[[], object] = trim_memory,
        is_open: Callable[[str], bool] = lambda _: False,
        too_many: Callable[[int], PlannerError] = _too_many,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._after = after
        self._is_open = is_open
        self._too_many = too_many
        self._clock = clock
        self._tasks: OrderedDict[str, Task[Any]] = OrderedDict()
        self._waiting: list[Task[Any]] = []
        self._working: list[Task[Any]] = []
        self._last: dict[str, int] = {}
        """Number of the last turn of each session."""
        self._looked_s = 0.0
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """Return how many tasks are known, finished or not."""
        return len(self._tasks)

    def latest(self, key: str) -> Task[Any] | None:
        """Return the task that was last asked for by a key, even a stopped one; None when it is forgotten."""
        return self._tasks.get(key)

    def find(self, key: str) -> Task[Any] | None:
        """Return a task that was asked for and not stopped."""
        found = self._tasks.get(key)
        return None if found is None or found.stop.is_set() else found

    def unfinished(self) -> tuple[Task[Any], ...]:
        """Return the tasks that have not ended."""
        return tuple(one for one in tuple(self._tasks.values()) if not one.finished.is_set())

    def pending(self, watcher: str) -> tuple[Task[Any], ...]:
        """Return the tasks that a session waits for."""
        return tuple(one for one in self.unfinished() if watcher in one.watchers)

    def ask(
        self,
        key: str,
        work: Work[T],
        watcher: str,
        *,
        ahead: bool = False,
        cost: float = 0.0,
        rows: int = 0,
        files: OnDisk | None = None,
    ) -> Task[T]:
        """Return the task of a key; it is a new one when there is none, or when it was stopped.

        Args:
            key: Names the question and all that its answer depends on.
            work: Computes the answer.
            watcher: The session that asks.
            ahead: Whether no page needs the answer now.
            cost: About how much work it is, in any unit.
            rows: Rows of tables that it works on.
            files: What it keeps on disk.

        Raises:
            PlannerError: Too many tasks have not ended.
        """
        with self._changed:
            found: Task[T] | None = self.find(key)
            if found is None or (self.limits.retried and found.error is not None):
                unfinished = sum(one.key != key for one in self.unfinished())
                if self.limits.unfinished is not None and unfinished >= self.limits.unfinished:
                    raise self._too_many(unfinished)
                large = self.limits.large_rows is not None and rows > self.limits.large_rows
                found = Task(key, work, next(self._numbers), ahead, cost, large, files)
                self._tasks[key] = found
                self._waiting.append(found)
            found.watchers |= {watcher}
            found.ahead = found.ahead and ahead
            found.asked_s = self._clock()
            self._tasks.move_to_end(key)
            self._forget_oldest(found)
            self.look()
        return found

    def leave(self, watcher: str, *keys: str) -> None:
        """Let a session watch some tasks no more; one that no session watches any more stops."""
        with self._changed:
            for found in filter(None, map(self.find, keys)):
                if watcher in found.watchers:
                    found.watchers -= {watcher}
                    if not found.watchers and not found.finished.is_set():
                        found.stop.set()
            self.look()

    def leave_others(self, watcher: str, keys: Collection[str] = ()) -> None:
        """Let a session watch no tasks but those of some keys."""
        self.leave(watcher, *(key for key in tuple(self._tasks) if key not in keys))

    def forget(self, *keys: str) -> None:
        """Stop and forget the tasks of some keys, whoever watches them."""
        with self._changed:
            for found in filter(None, (self._tasks.pop(key, None) for key in keys)):
                found.stop.set()
            self.look()

    def clear(self) -> None:
        """Stop and forget all tasks."""
        self.forget(*tuple(self._tasks))

    def rest(self) -> None:
        """Take no memory for files of finished tasks; what is looked at again is read from the disk."""
        with self._changed:
            for one in self._tasks.values():
                if one.finished.is_set() and one.files is not None:
                    one.files.rest()

    def wait(self, *asked: Task[Any], at_end: bool = False) -> None:
        """Wait for tasks as long as a page waits, or does at its end; meanwhile they are asked for."""
        until_s = self._clock() + (self.limits.last_s if at_end else self.limits.patience_s)
        for task in asked:
            while (left_s := until_s - self._clock()) > 0 and not task.finished.is_set():
                self.watched(asked)
                task.finished.wait(min(left_s, self.limits.look_s))

    def watched(self, asked: Sequence[Task[Any]]) -> None:
        """Note that a page still watches tasks."""
        for one in asked:
            one.asked_s = self._clock()
        self.look()

    def period_s(self, asked: Sequence[Task[Any]], *, needed: bool = True) -> float:
        """Return after how many seconds a page in a browser looks at tasks again; seldom where another place does too.

        The browser goes through the whole page at each look: three places that looked five times a second took a
        processor from what they waited for.
        """
        now_s = self._clock()
        begun_s = min((one.begun_s for one in asked if one.begun_s is not None), default=now_s)
        period_s = max(_LOOK_S, (now_s - begun_s) * _LOOK_SHARE) if needed else _MOST_LOOK_S
        return max(self.limits.look_s, min(period_s, _MOST_LOOK_S))

    def look(self) -> None:
        """End what is stopped before its first turn, and give free turns to those who wait."""
        with self._changed:
            self._looked_s = self._clock()
            for one in [task for task in self._waiting if self._is_stopped(task) and not task.under_way]:
                self._waiting.remove(one)
                self._finish(one)
            while len(self._working) < self.limits.at_once and (following := self._following()) is not None:
                self._begin(following)
            self._changed.notify_all()

    def _forget_oldest(self, but: Task[Any]) -> None:
        """Forget the oldest tasks that have ended, first those whose tabs are closed: an open one would ask again."""
        ended = [one for one in self._tasks.values() if one.finished.is_set() and one is not but]
        for is_open, one in sorted(((self._is_watched(one), one) for one in ended), key=lambda found: found[0]):
            kept = self.limits.kept_open if is_open and self.limits.kept_open is not None else self.limits.kept
            most_bytes = self.limits.disk_bytes
            if len(self._tasks) > kept or (most_bytes is not None and self._disk_bytes() > most_bytes):
                del self._tasks[one.key]

    def _disk_bytes(self) -> int:
        return sum(one.files.disk_bytes for one in self._tasks.values() if one.files is not None)

    def _is_watched(self, task: Task[Any]) -> bool:
        """Return whether the tab of a session that watches a task is open."""
        return any(map(self._is_open, task.watchers))

    def _is_stopped(self, task: Task[Any]) -> bool:
        """Return whether a task is stopped; what was stopped stays so, because it is half an answer."""
        most_s = self.limits.unwatched_s
        if most_s is not None and self._is_watched(task):
            task.asked_s = self._clock()
        elif most_s is not None and self._clock() - task.asked_s > most_s:
            task.stop.set()
        return task.stop.is_set()

    def _place(self, task: Task[Any]) -> tuple[bool, int, bool, float, int]:
        """Return the order of turns: needed now, whose sessions had no turn for longest, under way, cheap, first."""
        last = min((self._last.get(watcher, 0) for watcher in task.watchers), default=0)
        return task.ahead, last, not task.under_way, task.cost, task.number

    def _may_work(self, task: Task[Any]) -> bool:
        """Return whether a task may have a free turn: neither prepared ahead at the last one, nor large too soon."""
        if task.ahead and sum(one.ahead for one in self._working) >= max(self.limits.at_once - 1, 1):
            return False
        if task.under_way or not task.large:
            return True
        begun_s = [one.begun_s for one in (*self._working, *self._waiting) if one.large and one.begun_s is not None]
        soon = bool(begun_s) and self._clock() - max(begun_s) <= self.limits.alone_s
        return not soon and len(begun_s) < self.limits.at_once

    def _following(self) -> Task[Any] | None:
        """Return the task that has the next turn; None when none may work now."""
        return min(filter(self._may_work, self._waiting), key=self._place, default=None)

    def _begin(self, task: Task[Any]) -> None:
        """Give a turn to a task that waits, with a thread if it is its first."""
        self._waiting.remove(task)
        self._working.append(task)
        self._last |= dict.fromkeys(task.watchers, next(self._numbers))
        if task.under_way:
            return
        task.begun_s = self._clock()
        try:
            threading.Thread(target=self._run, args=(task,), daemon=True).start()
        except RuntimeError as error:  # the system gives no thread
            task.error = error
            self._working.remove(task)
            self._finish(task)

    def _finish(self, task: Task[Any]) -> None:
        task.work = None
        task.files = task.files if task.result is not None else None
        task.finished.set()

    def _end(self, task: Task[Any]) -> None:
        """Give the turn of a task that has finished to the next one."""
        with self._changed:
            self._working.remove(task)
            if not self._working and not self._waiting:
                self._last.clear()
            self.look()

    def _pass_on(self, task: Task[Any]) -> None:
        """Let a task of other sessions, or one that a page needs sooner, have a turn, and wait for the next one."""
        with self._changed:
            self._working.remove(task)
            others = [one for one in self._waiting if task.watchers.isdisjoint(one.watchers) or one.ahead < task.ahead]
            if not any(map(self._may_work, others)):
                self._working.append(task)
                return
            task.number = next(self._numbers)
            self._waiting.append(task)
            self.look()
            while task not in self._working and not self._is_stopped(task):
                self._changed.wait(self.limits.look_s)
            if task not in self._working:  # it has its turn at once, so that it can end
                self._begin(task)

    def _run(self, task: Task[Any]) -> None:
        begun_s, is_half = self._clock(), False

        def stopped() -> bool:
            nonlocal begun_s, is_half
            now_s = self._clock()
            if now_s - self._looked_s >= self.limits.look_s:
                self.look()
            if now_s - begun_s >= self.limits.turn_s:
                self._pass_on(task)
                begun_s = self._clock()
            is_half = self._is_stopped(task)
            return is_half

        try:
            work = task.work
            found = None if work is None or self._is_stopped(task) else work(task.report, stopped)
            if not is_half:
                task.result = found
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is asked for
            task.error = error.with_traceback(None)  # which would keep the data of the question
        finally:
            work = None
            self._finish(task)
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
"""Answers for pages, apart from simulations and captures."""


def watcher() -> str:
    """Return what Streamlit calls this session; empty where no browser is."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context is not None else ""


def is_open(watcher: str) -> bool:
    """Return whether the tab of a session is open; one that draws a page again, or is hidden, is."""
    return not watcher or not runtime.exists() or runtime.get_instance().is_active_session(watcher)


def watch(tasks: Tasks, asked: Sequence[Task[Any]], draw: Callable[[], None], *, needed: bool = True) -> None:
    """Draw how far tasks are, again and again; draw the page again when all have ended.

    Those that are not needed here stop when nothing else needs them, which draws the page again when they end.
    """

    def look() -> None:
        tasks.watched(asked if needed else ())
        draw()
        if all(one.finished.is_set() for one in asked):
            draw_again()

    st.fragment(look, run_every=tasks.period_s(asked, needed=needed))()


def _say(words: str) -> None:
    st.caption(f"{WAITS} {words} …")


def kept_place() -> DeltaGenerator:
    """Return a place for what is shown only while something runs, so that what follows stays where it is.

    Streamlit keeps what an earlier run drew until a run ends: a button one place further up would be there twice.
    """
    return st.container()


def is_answered(key: str) -> bool:
    """Return whether an answer is there, or why there is none."""
    found = ANSWERS.find(key)
    return found is not None and found.finished.is_set()


def answer(key: str, work: Work[T], words: str, *, last: bool = False, at_end: bool = False) -> T | None:
    """Return an answer; None while it is computed, which is said here until the page is drawn with it.

    Args:
        key: Names the question and all that its answer depends on.
        work: Computes it.
        words: What is done meanwhile.
        last: Whether it begins only when the session waits for no other answer: they would share one processor.
        at_end: Whether all else of the page is drawn.

    Raises:
        PlannerError: There is no answer.
    """
    with kept_place():
        if last and ANSWERS.find(key) is None and (others := ANSWERS.pending(watcher())):
            watch(ANSWERS, others, lambda: _say(words), needed=False)
            return None
        while True:
            task = ANSWERS.ask(key, work, watcher())
            ANSWERS.wait(task, at_end=at_end)
            if not (task.finished.is_set() and task.stop.is_set()):
                break
        if not task.finished.is_set():
            watch(ANSWERS, (task,), lambda: _say(words))
            return None
    return task.value()
