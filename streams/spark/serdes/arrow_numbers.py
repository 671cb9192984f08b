"""Convert big-endian numbers, as Kafka's serializers write them, to Arrow arrays and back.

Whole buffers are converted: no Python object is made for any number.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

_ARRAY_TYPE_CODES = {pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}


def decode_big_endian_numbers(values: Sequence[bytes | None], arrow_type: Any) -> Any:
    """Convert big-endian bytes to an Arrow array of `arrow_type`: int32, int64 or float64.

    Raises pyarrow.ArrowInvalid where the length of one is not that of the type.
    """
    fixed = pa.array(values, pa.binary(arrow_type.bit_width // 8))
    validity, data = fixed.buffers()
    return pa.Array.from_buffers(
        arrow_type,
        len(values),
        [validity, pa.py_buffer(_swap_byte_order(data, arrow_type))],
        offset=fixed.offset,
    )


def encode_big_endian_numbers(numbers: Any) -> list[bytes | None]:
    """Convert an Arrow array of int32, int64 or float64 to the big-endian bytes of each number."""
    whole = pa.concat_arrays([numbers])  # A slice of another array then begins at 0, or:
    validity, data = whole.buffers()
    if whole.offset:  # a single array was returned as it is, with its offset.
        data = data.slice(whole.offset * (numbers.type.bit_width // 8))
        validity = whole.is_valid().buffers()[1] if whole.null_count else None
    size = numbers.type.bit_width // 8
    swapped = pa.py_buffer(_swap_byte_order(data.slice(0, len(whole) * size), numbers.type))
    fixed = pa.Array.from_buffers(pa.binary(size), len(whole), [validity, swapped])
    found: list[bytes | None] = fixed.to_pylist()
    return found


def _swap_byte_order(data: Any, arrow_type: Any) -> array[Any]:
    """Return the numbers of a buffer, with their bytes swapped on a little-endian machine."""
    numbers = array(_ARRAY_TYPE_CODES[arrow_type])
    if data is not None:
        numbers.frombytes(data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
