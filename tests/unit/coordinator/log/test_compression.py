"""Test that compressed batches are kept as clients made them, and which are refused."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tracemalloc

import pytest

from coordinator.log.batch import HEADER_BYTES, RecordBatch, iterate_batches
from coordinator.log.compression import (
    CompressionType,
    DecompressedTooLarge,
    compress_records,
    decompress_records,
)

CODECS = list(CompressionType)[1:]
# As librdkafka 2.16 and Kafka's ConsoleProducer 4.3 sent them; snappy of librdkafka has no frame.
SENT = {
    ("librdkafka", CompressionType.GZIP): (
        "AAAAAAAAAAAAAAByAAAAAAKH3W7TAAEAAAACAAABi8/laAAAAAGLz+VoAv//////////////////AAAAAx+LCAAA"
        "AAAAAAObwMTAwMCVnVqpa/CBsSwxpzRVgf4kE1MGU8UEJgYmJrBLDAfeJSwsYJcYDbBLAIcqp8KeAQAA"
    ),
    ("java", CompressionType.GZIP): (
        "AAAAAAAAAAAAAABuAAAAAALfIFKlAAEAAAACAAABof1sdr4AAAGh/Wx2xwAAAAAAAAAAAAAAAAAAAAAAAx+LCAAA"
        "AAAAAP/rYGJgYODKTq3UNfjAWJaYU5qqQH+SoYOJQYAJ7ArDgXWFEAvYFUYD6AoAmQe19ZIBAAA="
    ),
    ("librdkafka", CompressionType.SNAPPY): (
        "AAAAAAAAAAAAAABTAAAAAAL/a9nKAAIAAAAAAAABi8/laAAAAAGLz+VoAP//////////////////AAAAAYoBSJAC"
        "AAAACmtleS0w8AF2YWx1ZSD+BgDGBgAQAgJoAngAAAAAAAAAAQAAAFMAAAAAAvO1nQEAAgAAAAAAAAGLz+VoAQAA"
        "AYvP5WgB//////////////////8AAAABigFIkAIAAAAKa2V5LTHwAXZhbHVlIP4GAMYGABACAmgCeAAAAAAAAAAC"
        "AAAAUwAAAAAC5tdQXAACAAAAAAAAAYvP5WgCAAABi8/laAL//////////////////wAAAAGKAUiQAgAAAAprZXkt"
        "MvABdmFsdWUg/gYAxgYAEAICaAJ4"
    ),
    ("java", CompressionType.SNAPPY): (
        "AAAAAAAAAAAAAAB/AAAAAAI2SryLAAIAAAACAAABof1sekUAAAGh/Wx6cgAAAAAAAAABAAAAAAAAAAAAA4JTTkFQ"
        "UFkAAAAAAQAAAAEAAAA6kgNIiAIAAAAKa2V5LTDwAXZhbHVlIP4GAMYGABQAiAIAWAIFhgAx/oYA9oYABFoEBYYA"
        "Mv6GAOqGAA=="
    ),
    ("librdkafka", CompressionType.LZ4): (
        "AAAAAAAAAAAAAABeAAAAAALx5xa9AAMAAAAAAAABi8/laAAAAAGLz+VoAP//////////////////AAAAAQQiTRhg"
        "QIIeAAAA/wSQAgAAAAprZXktMPABdmFsdWUgBgBfUAICaAJ4AAAAAAAAAAAAAAABAAAAcAAAAAACpWCwGwADAAAA"
        "AQAAAYvP5WgBAAABi8/laAL//////////////////wAAAAIEIk0YYECCMAAAAP8EkAIAAAAKa2V5LTHwAXZhbHVl"
        "IAYAX6ECAmgCeJACAAICigAfMooAZ1ACAmgCeAAAAAA="
    ),
    ("java", CompressionType.LZ4): (
        "AAAAAAAAAAAAAAB1AAAAAAL98pheAAMAAAACAAABof1sfbkAAAGh/Wx92wAAAAAAAAACAAAAAAAAAAAAAwQiTRhg"
        "QII1AAAA/wSIAgAAAAprZXktMPABdmFsdWUgBgBfYQCIAgBEAoYAHzGGAGwRBIYAHzKGAGNQbHVlIAAAAAAA"
    ),
    ("librdkafka", CompressionType.ZSTD): (
        "AAAAAAAAAAAAAABsAAAAAAIp5zX1AAQAAAACAAABi8/laAAAAAGLz+VoAv//////////////////AAAAAyi1L/0A"
        "WJUBABQCkAIAAAAKa2V5LTDwAXZhbHVlIAICaAJ4kAIAAgIxBAQyBQAcJAEE/JBYwwj9S1rC"
    ),
    ("java", CompressionType.ZSTD): (
        "AAAAAAAAAAAAAABqAAAAAAJdUJ0wAAQAAAACAAABof1sgSMAAAGh/WyBRQAAAAAAAAADAAAAAAAAAAAAAyi1L/0A"
        "WGwBAOiIAgAAAAprZXktMPABdmFsdWUgAIgCAEICMUQEMgUAGCQBBNyQWMII8Eta7AEAAA=="
    ),
}


def sent(client: str, codec: CompressionType) -> list[RecordBatch]:
    return list(iterate_batches(base64.b64decode(SENT[client, codec])))


@pytest.mark.parametrize(("client", "codec"), list(SENT))
def test_a_client_s_batch_opens_to_its_records(client: str, codec: CompressionType) -> None:
    found = sent(client, codec)
    assert {batch.attributes & 7 for batch in found} == {codec}
    records = [record for batch in found for record in batch.iterate_records()]
    assert [record.offset for record in records] == [0, 1, 2]
    assert [record.key for record in records] == [b"key-0", b"key-1", b"key-2"]
    assert {record.value for record in records} == {b"value " * 20}
    headers = (("h", b"x"),) if client == "librdkafka" else ()
    assert {record.headers for record in records} == {headers}


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("size", [0, 1, 32 << 10, 1 << 20])
def test_what_was_compressed_decompresses_to_the_same(codec: CompressionType, size: int) -> None:
    data = os.urandom(size // 2) + b"\0" * (size - size // 2)
    assert decompress_records(codec, compress_records(codec, data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_room_is_made_for_it(codec: CompressionType) -> None:
    bomb = compress_records(codec, bytes(32 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(DecompressedTooLarge, match="more than 1000000 bytes"):
            decompress_records(codec, bomb, max_bytes=1_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


@pytest.mark.parametrize("codec", CODECS)
def test_exactly_the_limit_is_not_too_large(codec: CompressionType) -> None:
    data = os.urandom(300_000)
    assert decompress_records(codec, compress_records(codec, data), max_bytes=300_000) == data
    with pytest.raises(DecompressedTooLarge):
        decompress_records(codec, compress_records(codec, data), max_bytes=299_999)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [0, 1, 10, 40, -1, -5])
def test_bytes_that_are_not_of_the_codec_are_refused(codec: CompressionType, cut: int) -> None:
    whole = compress_records(codec, os.urandom(100_000))
    with pytest.raises(ValueError, match=r"\w"):
        decompress_records(codec, whole[:cut])


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_whose_compressed_bytes_are_damaged_is_no_batch_of_records(
    codec: CompressionType,
) -> None:
    batch = sent("librdkafka", codec)[0]
    damaged = batch._replace(data=bytes(batch.data)[:HEADER_BYTES] + b"damaged")
    with pytest.raises(ValueError, match="not "):
        list(damaged.iterate_records())


def test_a_codec_that_does_not_exist_is_refused() -> None:
    for call in (compress_records, decompress_records):
        with pytest.raises(ValueError, match="compression 5 is unknown"):
            call(5, b"")


def test_the_broker_does_not_import_cramjam_to_start() -> None:
    check = "import sys, coordinator.broker_process; sys.exit('cramjam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
