"""Test that windowed keys have Kafka Streams' own bytes, and none that it would refuse."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import Windowed, serdes
from streams.serdes import Serde
from tests.unit.streams.serdes.kafka_bytes import SESSIONS, SIZE_MS, TIME_MAX, TIME_WINDOWS, Key

TIME = serdes.windowed(serdes.string, SIZE_MS)
SESSION = serdes.session_windowed(serdes.string)
KEYS = st.text(st.characters(exclude_categories=["Cs"]))
TIMES = st.integers(0, TIME_MAX)


@pytest.mark.parametrize("case", TIME_WINDOWS)
def test_a_time_window_lies_as_kafka_streams_writes_it(case: Key) -> None:
    key = Windowed(case.key, case.start_ms, case.end_ms)
    assert TIME.serialize(key).hex() == case.data
    assert TIME.deserialize(bytes.fromhex(case.data)) == key


@pytest.mark.parametrize("case", SESSIONS)
def test_a_session_lies_as_kafka_streams_writes_it(case: Key) -> None:
    key = Windowed(case.key, case.start_ms, case.end_ms)
    assert SESSION.serialize(key).hex() == case.data
    assert SESSION.deserialize(bytes.fromhex(case.data)) == key


@given(KEYS, TIMES, st.integers(1, TIME_MAX))
def test_time_windows_round_trip(key: str, start_ms: int, size_ms: int) -> None:
    serde = serdes.windowed(serdes.string, size_ms)
    windowed = Windowed(key, start_ms, min(start_ms + size_ms, TIME_MAX))
    assert serde.deserialize(serde.serialize(windowed)) == windowed


@given(KEYS, st.tuples(TIMES, TIMES).map(sorted))
def test_sessions_round_trip(key: str, times: list[int]) -> None:
    windowed = Windowed(key, *times)
    assert SESSION.deserialize(SESSION.serialize(windowed)) == windowed


def test_without_a_size_a_window_ends_at_the_end_of_time() -> None:
    serde = serdes.windowed(serdes.string)
    data = serde.serialize(Windowed("k", 5, 65))
    assert serde.deserialize(data) == Windowed("k", 5, TIME_MAX)


def test_a_size_may_be_a_timedelta() -> None:
    serde = serdes.windowed(serdes.string, timedelta(minutes=1))
    assert serde.name == "windowed(string, 60000)"
    assert serde.deserialize(serde.serialize(Windowed("k", 0, 60_000))).end_ms == 60_000


def test_a_window_of_another_size_is_refused_since_its_end_is_not_written() -> None:
    serde = serdes.windowed(serdes.string, 10)
    for end_ms in (9, 11, TIME_MAX):
        with pytest.raises(ValueError, match=r"needs windows of 10 ms.*got \[k@0/"):
            serde.serialize(Windowed("k", 0, end_ms))
    last = Windowed("k", TIME_MAX - 5, TIME_MAX)
    assert serde.deserialize(serde.serialize(last)) == last
    with pytest.raises(ValueError, match="needs windows of 10 ms"):
        serde.serialize(Windowed("k", TIME_MAX - 5, TIME_MAX - 1))


@pytest.mark.parametrize("size_ms", [0, -1, 1.5, True, "60000"])
def test_a_size_that_is_none_is_refused(size_ms: Any) -> None:
    with pytest.raises(ValueError, match="size"):
        serdes.windowed(serdes.string, size_ms)


@pytest.mark.parametrize("serde", [TIME, SESSION])
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("plain", "needs a Windowed key, got str: 'plain'"),
        (Windowed(None, 0, 1), r"\[None@0/1\]"),
        (Windowed("k", -1, 1), r"\[k@-1/1\]"),
    ],
)
def test_what_is_no_key_of_a_window_is_refused(serde: Serde[Any], key: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        serde.serialize(key)


def test_a_session_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[k@5/4\]"):
        SESSION.serialize(Windowed("k", 5, 4))
    with pytest.raises(ValueError, match="from 5 to 4"):
        SESSION.deserialize(b"k" + (4).to_bytes(8, "big") + (5).to_bytes(8, "big"))


@pytest.mark.parametrize(("serde", "size"), [(TIME, 8), (SESSION, 16)])
def test_bytes_without_a_window_are_refused(serde: Serde[Any], size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes of its window, got {size - 1}"):
        serde.deserialize(bytes(size - 1))
    assert serde.deserialize(b"") is None


def test_a_window_that_begins_before_time_is_refused() -> None:
    with pytest.raises(ValueError, match="got -1"):
        TIME.deserialize(b"k" + b"\xff" * 8)
