"""Test that the hand-written loop that counts keeps what a restart would need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocksdict import Options, Rdict

from benchmarks.handwritten import count_every_update


class RecordingProducer:
    """Records what is produced, as topic, key and count."""

    def __init__(self) -> None:
        self.produced: list[tuple[str, bytes, int]] = []

    def produce(self, topic: str, value: bytes, key: bytes, *, timestamp: int) -> None:
        self.produced.append((topic, key, int.from_bytes(value, "big")))


class Message:
    """Represents a record with the methods of a consumer's message."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def key(self) -> bytes:
        return self._key

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


def test_each_update_goes_out_and_each_changed_count_is_kept_at_the_commit(tmp_path: Path) -> None:
    producer: Any = RecordingProducer()
    database = tmp_path / "counts"
    handle, before_commit = count_every_update("out", "log", database)(producer)
    for key in (b"a", b"b", b"a"):
        handle(Message(key))
    assert producer.produced == [("out", b"a", 1), ("out", b"b", 1), ("out", b"a", 2)]
    producer.produced.clear()
    before_commit()
    assert sorted(producer.produced) == [("log", b"a", 2), ("log", b"b", 1)]
    producer.produced.clear()
    handle(Message(b"b"))
    before_commit()
    assert producer.produced == [("out", b"b", 2), ("log", b"b", 2)]
    del handle, before_commit
    kept = Rdict(str(database), Options(raw_mode=True))
    assert dict(kept.items()) == {b"a": bytes(7) + b"\x02", b"b": bytes(7) + b"\x02"}
    kept.close()
