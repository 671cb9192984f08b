"""Compress and decompress the records of a batch by the codec in its attributes.

Kafka compresses the bytes behind a batch's header as one stream: gzip, snappy in the frames of
snappy-java ("xerial") or bare, an lz4 frame, zstd. Produce and Fetch never look inside; a look-up
by time, the key check of a compacted topic, and the log cleaner do.

Compressed data of a client may be a bomb: a few bytes that stand for gigabytes. The output buffer
grows in steps that double, and never beyond the limit.
Source: org.apache.kafka.common.compress; Lz4BlockInputStream takes independent blocks only.

cramjam is imported with the first compressed batch: the broker starts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct

Bytes = bytes | bytearray | memoryview

DECOMPRESSED_BYTES_MAX = 64 << 20
_ROOM_BYTES_MIN = 1 << 16

_BIG_ENDIAN = Struct(">i")
_LITTLE_ENDIAN = Struct("<I")
# snappy-java: magic, version 1, oldest version that can read it 1.
_XERIAL = b"\x82SNAPPY\0" + _BIG_ENDIAN.pack(1) * 2
_XERIAL_MAGIC_BYTES = 8
_SNAPPY_BLOCK_BYTES = 32 << 10
# Magic; version 1 with independent blocks and no checksums; blocks of up to 64 KiB; the checksum
# of these two bytes. Kafka's Java client refuses the dependent blocks that cramjam's frames have.
_LZ4_FRAME = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_PLAIN = 1 << 31  # the block's length says that it isn't compressed


class CompressionType(IntEnum):
    """Names the codecs by the number in the three low bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressedTooLarge(ValueError):
    """Reports records that would take more bytes than allowed when decompressed."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"more than {max_bytes} bytes when decompressed")


def decompress_records(codec: int, data: Bytes, max_bytes: int = DECOMPRESSED_BYTES_MAX) -> Bytes:
    """Decompress the records of a batch.

    Raises: ValueError where the bytes are not of that codec, or there is no such codec;
    `DecompressedTooLarge` beyond `max_bytes`.
    """
    if codec == CompressionType.NONE:
        return data
    import cramjam

    try:
        match codec:
            case CompressionType.GZIP:
                return _decompress_into_growing_buffer(
                    cramjam.gzip.decompress_into, data, max_bytes
                )
            case CompressionType.SNAPPY:
                return _decompress_snappy(data, max_bytes)
            case CompressionType.LZ4:
                return _decompress_into_growing_buffer(cramjam.lz4.decompress_into, data, max_bytes)
            case CompressionType.ZSTD:
                return _decompress_into_growing_buffer(
                    cramjam.zstd.decompress_into, data, max_bytes
                )
    except cramjam.DecompressionError as error:
        raise ValueError(f"not {CompressionType(codec).name.lower()}: {error}") from error
    raise ValueError(f"compression {codec} is unknown")


def compress_records(codec: int, data: Bytes) -> Bytes:
    """Compress the records of a batch in the form that Kafka's clients read.

    Raises: ValueError if there is no such codec.
    """
    if codec == CompressionType.NONE:
        return data
    import cramjam

    match codec:
        case CompressionType.GZIP:
            return bytes(cramjam.gzip.compress(data))
        case CompressionType.SNAPPY:
            return _compress_snappy(data)
        case CompressionType.LZ4:
            return _compress_lz4(data)
        case CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(data))
    raise ValueError(f"compression {codec} is unknown")


def _decompress_into_growing_buffer(
    decompress_into: Callable[[Bytes, bytearray], int], data: Bytes, max_bytes: int
) -> Bytes:
    """Decompress into a buffer that doubles until all of the output fits.

    Raises: `DecompressedTooLarge` beyond `max_bytes`.
    """
    import cramjam

    room = min(max_bytes, max(_ROOM_BYTES_MIN, 4 * len(data)))
    while True:
        out = bytearray(room)
        try:
            size = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise
            if room == max_bytes:
                raise DecompressedTooLarge(max_bytes) from None
            room = min(max_bytes, 2 * room)
        else:
            return memoryview(out)[:size]


def _decompress_snappy(data: Bytes, max_bytes: int) -> Bytes:
    """Decompress snappy data, either in the frames of snappy-java or bare."""
    data = memoryview(data)
    if data[:_XERIAL_MAGIC_BYTES] != _XERIAL[:_XERIAL_MAGIC_BYTES]:
        return _decompress_snappy_block(data, 0, max_bytes)
    if len(data) < len(_XERIAL):
        raise ValueError("a snappy frame whose head is cut off")
    out = bytearray()
    at = len(_XERIAL)
    while at < len(data):
        if at + _BIG_ENDIAN.size > len(data):
            raise ValueError("a snappy block without its length")
        (size,) = _BIG_ENDIAN.unpack_from(data, at)
        at += _BIG_ENDIAN.size
        if not 0 < size <= len(data) - at:
            raise ValueError(f"a snappy block of {size} bytes; {len(data) - at} are left")
        out += _decompress_snappy_block(data[at : at + size], len(out), max_bytes)
        at += size
    return out


def _decompress_snappy_block(block: memoryview, decompressed_bytes: int, max_bytes: int) -> Bytes:
    """Decompress one snappy block, which begins with its decompressed length.

    `decompressed_bytes` have come out of earlier blocks, and count for the limit.
    """
    import cramjam

    if decompressed_bytes + cramjam.snappy.decompress_raw_len(block) > max_bytes:
        raise DecompressedTooLarge(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_snappy(data: Bytes) -> bytes:
    """Compress data with snappy into the frames of snappy-java."""
    import cramjam

    out = bytearray(_XERIAL)
    for at in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _SNAPPY_BLOCK_BYTES]))
        out += _BIG_ENDIAN.pack(len(block)) + block
    return bytes(out)


def _compress_lz4(data: Bytes) -> bytes:
    """Compress data into an lz4 frame of independent blocks."""
    import cramjam

    out = bytearray(_LZ4_FRAME)
    for at in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[at : at + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += _LITTLE_ENDIAN.pack(len(block)) + block
        else:
            out += _LITTLE_ENDIAN.pack(len(plain) | _LZ4_PLAIN)
            out += plain
    out += _LITTLE_ENDIAN.pack(0)
    return bytes(out)
