"""Test that Kafka Streams' classes write windowed keys and changes as ours do, and read ours."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streams import Windowed, serdes
from streams.common.changes import Change
from tests import brokers
from tests.differential.peer import JARS
from tests.kafka.server import JVM_FLAGS
from tests.processes import HANG_LIMIT_S
from tests.sampling import draw_seed
from tests.unit.streams.serdes import kafka_bytes as held

SOURCE = Path(__file__).with_name("SerdeBytes.java")
RANDOM_CASES = 200
CHANGED = serdes.changed(serdes.string)
SESSION = serdes.session_windowed(serdes.string)


class Question(NamedTuple):
    """Holds a question to Kafka Streams, and what it must answer if we are right."""

    asked: dict[str, Any]
    answer: Any


def held_cases() -> Iterator[Question]:
    """Yield a question for each of the bytes that the unit tests hold."""
    for kind, keys in (("time", held.TIME_WINDOWS), ("session", held.SESSIONS)):
        for key, start_ms, end_ms, data in keys:
            window = {"key": key, "start": start_ms, "end": end_ms}
            yield Question({"ask": f"write {kind}", **window}, data)
    for row in held.CHANGES:
        yield Question({"ask": "write change", "new": row.new, "old": row.old}, row.data)
    for read in held.READ_ONLY:
        yield Question({"ask": "read change", "data": read.data}, [read.new, read.old, read.latest])


def random_cases(rng: random.Random) -> Iterator[Question]:
    """Yield questions whether Kafka's serdes write what ours write, and read what was meant."""

    def text(length_max: int = 12) -> str:
        letters = "abc\x00é\u20ac\U0001f600"
        return "".join(rng.choices(letters, k=rng.randrange(length_max)))

    def time_ms() -> int:
        return rng.randrange(2 ** rng.randrange(1, 63))

    for _ in range(RANDOM_CASES):
        size_ms = rng.choice((1, 60_000, time_ms() + 1, held.TIME_MAX))
        serde = serdes.windowed(serdes.string, size_ms)
        key, start_ms = text(), time_ms()
        end_ms = min(start_ms + size_ms, held.TIME_MAX)
        data = serde.serialize(Windowed(key, start_ms, end_ms)).hex()
        yield Question({"ask": "write time", "key": key, "start": start_ms, "end": end_ms}, data)
        read = {"ask": "read time", "data": data, "size": size_ms}
        yield Question(read, [key, start_ms, end_ms])
        later_ms = min(start_ms + time_ms(), held.TIME_MAX)
        data = SESSION.serialize(Windowed(key, start_ms, later_ms)).hex()
        window = {"key": key, "start": start_ms, "end": later_ms}
        yield Question({"ask": "write session", **window}, data)
        yield Question({"ask": "read session", "data": data}, [key, start_ms, later_ms])
        new, old = rng.choice(((text(300), text()), (text(), None), (None, text())))
        data = CHANGED.serialize(Change(new, old)).hex()
        yield Question({"ask": "write change", "new": new, "old": old}, data)
        yield Question({"ask": "read change", "data": data}, [new, old, True])


def test_kafka_streams_writes_the_same_bytes_and_reads_ours() -> None:
    reason = JARS.missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    seed = draw_seed("bytes of serdes")
    questions = [*held_cases(), *random_cases(random.Random(seed))]
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", JARS.class_path(), str(SOURCE)],
        input="".join(json.dumps(each.asked) + "\n" for each in questions),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    for question, answer in zip(questions, answers, strict=True):
        assert answer == question.answer, f"{seed=} {question.asked}"


def test_a_window_without_a_size_is_read_as_kafka_streams_reads_it() -> None:
    """Read a window without a size: its size is Long.MAX there, and the end is cut off at that."""
    serde = serdes.windowed(serdes.string)
    for key, start_ms, _, data in held.TIME_WINDOWS:
        assert serde.deserialize(bytes.fromhex(data)) == Windowed(key, start_ms, held.TIME_MAX)
