"""Answers about frozen objects, worked out once for as long as the object lives."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, ref

_Subject = TypeVar("_Subject")
_More = ParamSpec("_More")
_Answer = TypeVar("_Answer")
_MOST_ANSWERS = 4


def once(work: Callable[Concatenate[_Subject, _More], _Answer]) -> Callable[Concatenate[_Subject, _More], _Answer]:
    """Remember what a pure function answers about an object that never changes.

    Args:
        work: All its arguments are hashable, and the first one, the object, can be referred to weakly. What it returns
            is shared by all that ask, so it is read-only. Other arguments that are compared by identity, such as
            snapshots, are referred to weakly as well, so that no answer keeps one alive.
    """
    known: WeakKeyDictionary[Any, dict[tuple[Any, ...], _Answer]] = WeakKeyDictionary()

    @wraps(work)
    def answer(subject: _Subject, /, *more: _More.args, **named: _More.kwargs) -> _Answer:
        found = known.get(subject)
        if found is None:
            found = known.setdefault(subject, {})
        given = tuple(map(_weakly, more))
        key = (given, *named.items()) if named else given
        if key not in found:
            while len(found) >= _MOST_ANSWERS:  # the other arguments may be snapshots, one for each cycle of a run
                found.pop(next(iter(found)), None)
            found[key] = work(subject, *more, **named)
        return found[key]

    return answer


def _weakly(argument: object) -> object:
    kind = type(argument)
    return ref(argument) if kind.__eq__ is object.__eq__ and kind.__weakrefoffset__ else argument
