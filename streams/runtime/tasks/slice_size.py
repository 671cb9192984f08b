"""Adapt how many records of a task are processed before the thread does something else."""

from __future__ import annotations

INITIAL_SLICE_SIZE, _SLICE_SIZE_MAX = 16, 256
_SLICE_TARGET_S = 0.005
"""The time in seconds that a slice should take."""


def adapt_slice_size(size: int, record_count: int, elapsed_s: float) -> int:
    """Return the size in records of a task's next slice, so that it takes about 5 ms.

    `record_count` records of a slice of `size` were processed in `elapsed_s` seconds. After a slice
    that took longer it is shortened in proportion; otherwise it doubles, up to a maximum.
    """
    if elapsed_s > _SLICE_TARGET_S and record_count:
        return max(int(record_count * _SLICE_TARGET_S / elapsed_s), 1)
    return max(size, min(size * 2, _SLICE_SIZE_MAX))
