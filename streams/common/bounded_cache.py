"""Remember the results of a function of bytes, within a number of bytes of memory.

Results are kept in two generations: when the newer one is full, it becomes the older one, and the
older one is dropped. So what was computed last is remembered without an order being kept.
"""

from __future__ import annotations

from collections.abc import Callable

_ENTRY_BYTES = 140
"""The measured size of an entry without its data: the headers of two objects, a short result and
their place in a dict."""


def remember_recent(compute: Callable[[bytes], bytes], bytes_max: int) -> Callable[[bytes], bytes]:
    """Return `compute` with a memory of its recent results, which takes up to `bytes_max` bytes.

    Results are short and never empty. Threads may share the function: each of its steps leaves the
    generations usable, and a race between two of them costs at most a repeated computation.
    """
    generation_bytes_max = bytes_max // 2
    newer: dict[bytes, bytes] = {}
    older: dict[bytes, bytes] = {}
    newer_bytes = 0

    def find_or_compute(data: bytes) -> bytes:
        nonlocal newer, older, newer_bytes
        found = newer.get(data) or older.get(data)
        if found is not None:
            return found
        result = compute(data)
        size_bytes = len(data) + _ENTRY_BYTES
        if size_bytes <= generation_bytes_max:
            newer_bytes += size_bytes
            if newer_bytes > generation_bytes_max:
                older, newer, newer_bytes = newer, {}, size_bytes
            newer[data] = result
        return result

    return find_or_compute
