"""How the C library keeps memory that was freed: with its own rules a server holds on to gigabytes of it."""

import ctypes

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGE_BYTES = 4 << 20
_SPARE_BYTES = 64 << 20


def trim_memory_when_freed() -> None:
    """Let glibc take large arrays from the system and give them back, and share its heaps between threads.

    By itself it raises the size from which it does so to 32 MB, and gives every thread a heap, so that arrays of
    simulations leave holes that nothing else fits into. Where there is no glibc nothing is done.
    """
    _ask("mallopt", _MMAP_THRESHOLD, _LARGE_BYTES)
    _ask("mallopt", _TRIM_THRESHOLD, _SPARE_BYTES)
    _ask("mallopt", _ARENA_MAX, 2)


def trim_memory() -> None:
    """Give back what is free between what is kept, after work that used much; it takes a tenth of a second or two.

    Arrow has a heap of its own, which keeps the columns of a snapshot that nobody looks at any more.
    """
    _ask("malloc_trim", 0)
    pa.default_memory_pool().release_unused()


def _ask(function: str, *numbers: int) -> None:
    try:
        getattr(ctypes.CDLL(None), function)(*numbers)
    except (OSError, AttributeError, TypeError):
        return
