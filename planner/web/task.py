"""What a slow answer is: a task with its progress, its result, and the limits of its kind."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task is.

    Attributes:
        done: Parts of the work that are done, such as cycles.
        total: How many there are; 0 before that is known.
        words: The same as a sentence; empty before there is something to say.
    """

    done: int = 0
    total: int = 0
    words: str = ""

    @property
    def fraction(self) -> float:
        """Share of the work that is done, from 0 to 1."""
        return min(self.done / max(self.total, 1), 1.0)


class Report(Protocol):
    """Takes the progress of a task, and a result that replaces the one before; that is a value which never changes."""

    def __call__(self, progress: Progress, partial: Any = None, /) -> None:
        """Publish both at once."""


Stopped: TypeAlias = Callable[[], bool]
"""Returns whether to stop, with any result. Called often: here other tasks get their turn."""
Work: TypeAlias = Callable[[Report, Stopped], T]
"""Computes a result in another thread, and draws nothing."""


class OnDisk(Protocol):
    """What a task keeps in files until it is forgotten, or ends without a result."""

    @property
    def disk_bytes(self) -> int:
        """Size of the files."""

    def rest(self) -> None:
        """Take no memory until somebody reads from the files again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Times and sizes of tasks.

    Attributes:
        at_once: Tasks that work at the same time.
        unfinished: Tasks that may wait or work; a further one is rejected. None for any number.
        kept: Tasks from which on finished ones are forgotten.
        kept_open: The same for those that an open tab watches; None for no difference.
        disk_bytes: Size of all files of tasks from which on finished ones are forgotten; None for any size.
        patience_s: How long a page waits before it is drawn without a result.
        last_s: How long it waits for a result at its end, when all else is drawn.
        look_s: Least period at which is looked whether a result is there; `Tasks.period_s` is that of a browser.
        turn_s: How long a task works while others wait.
        unwatched_s: How long nobody may watch a task until it stops; None where it never does.
        large_rows: Rows of tables above which a task is large; None where none is.
        alone_s: How long a large task has the memory to itself before another large one begins.
        retried: Whether a task that failed starts again when it is asked for.
    """

    at_once: int = 2
    unfinished: int | None = None
    kept: int = 64
    kept_open: int | None = None
    disk_bytes: int | None = None
    patience_s: float = 0.3
    last_s: float = 0.0
    look_s: float = 0.2
    turn_s: float = 2.0
    unwatched_s: float | None = 10.0
    large_rows: int | None = None
    alone_s: float = 0.0
    retried: bool = False


@dataclass(eq=False)
class Task(Generic[T]):
    """A question and its answer, shared by all who ask it.

    Attributes:
        key: Names the question and all that its answer depends on.
        work: Computes the answer; None when it has ended, so that it keeps no data of its question.
        number: Place in the order in which tasks were asked for.
        ahead: Whether no page needs it now; then it works only while no other task waits.
        cost: About how much work it is; of tasks that wait equally long, the cheapest begins.
        large: Whether it takes so much memory that few of its kind may be under way.
        files: What it keeps on disk; None for nothing, and where it ends without a result.
        watchers: The sessions that asked for it.
        asked_s: When it was last watched, by the clock of its kind.
        state: Progress and partial result, replaced together.
        result: The answer; None before.
        error: Why there is none.
        begun_s: When it had its first turn, by the same clock; None before.
        stop: Set to stop it; a task that stops has no result.
        finished: Set when it has ended, in whatever way.
    """

    key: str
    work: Work[T] | None
    number: int
    ahead: bool = False
    cost: float = 0.0
    large: bool = False
    files: OnDisk | None = None
    watchers: frozenset[str] = frozenset()
    asked_s: float = 0.0
    state: tuple[Progress, T | None] = (Progress(), None)
    result: T | None = None
    error: BaseException | None = None
    begun_s: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)

    @property
    def under_way(self) -> bool:
        """Whether it has had a turn."""
        return self.begun_s is not None

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
