"""Find how far the batches in a piece of a segment are intact."""

from __future__ import annotations

from contextlib import suppress

from coordinator.log.batch import RecordBatch, iterate_batches


def count_intact_bytes(
    data: bytes, lowest_offset: int, limit_offset: int, *, is_led_up_to: bool
) -> int:
    """Return the size in bytes of the intact batches at the start of the data.

    Their offsets grow from `lowest_offset` and stay below `limit_offset`: no checksum is over an
    offset, so it is compared with the batch before. `is_led_up_to`: the batch that ends at
    `lowest_offset` stands before the data, or the data begins the segment.
    """
    size = 0
    offset = lowest_offset
    last: RecordBatch | None = None
    last_from = offset  # the lowest base offset that the last one could have
    # A batch that claims to be shorter than its header, a ValueError, isn't intact either.
    with suppress(ValueError):
        for batch in iterate_batches(data):
            if batch.magic != 2 or not batch.is_intact() or batch.last_offset >= limit_offset:
                break
            if batch.base_offset < offset:
                # One of the two says a wrong offset. It is the one before if it has room between
                # its own neighbours, somewhere before the offset that it says.
                if last and last_from + last.last_offset_delta < batch.base_offset:
                    size -= last.size
                break
            last, last_from = batch, offset if is_led_up_to else batch.base_offset
            is_led_up_to = True  # the batch before the next one is checked, too
            offset = batch.last_offset + 1
            size += batch.size
    return size
