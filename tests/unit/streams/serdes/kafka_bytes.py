"""Hold the bytes, in hex, that Kafka Streams' own serialisers write for windowed keys and changes.

`tests/differential/test_serde_bytes.py` asks Kafka's classes for these bytes again, and has them
read what the serdes here write.
"""

from __future__ import annotations

from typing import NamedTuple

TIME_MAX = 2**63 - 1
SIZE_MS = 60_000


class Key(NamedTuple):
    """Holds a windowed key and the bytes that Kafka's serialiser writes for it."""

    key: str
    start_ms: int
    end_ms: int
    data: str


TIME_WINDOWS = (
    Key("k", 0, SIZE_MS, "6b0000000000000000"),
    Key("", 1, 1 + SIZE_MS, "0000000000000001"),
    Key("día", 1_700_000_000_000, 1_700_000_060_000, "64c3ad610000018bcfe56800"),
    Key("late", TIME_MAX - 5, TIME_MAX, "6c6174657ffffffffffffffa"),
)
SESSIONS = (
    Key("k", 0, 0, "6b00000000000000000000000000000000"),
    Key("", 3, 7, "00000000000000070000000000000003"),
    Key(
        "día",
        1_700_000_000_000,
        1_700_000_000_001,
        "64c3ad610000018bcfe568010000018bcfe56800",
    ),
    Key("long", 5, TIME_MAX, "6c6f6e677fffffffffffffff0000000000000005"),
)


class Row(NamedTuple):
    """Holds a change of a row and the bytes that Kafka's serialiser writes for it."""

    new: str | None
    old: str | None
    data: str


CHANGES = (
    Row(None, "old", "6f6c6400"),
    Row("new", None, "6e657701"),
    Row("new", "old", "066e65776f6c6402"),
    Row("", "", "0002"),
    Row("", None, "01"),
    Row(None, "", "00"),
    Row("n" * 63, "o", "7e" + "6e" * 63 + "6f02"),
    Row("n" * 64, "o", "8001" + "6e" * 64 + "6f02"),
    Row("n" * 8192, "", "808001" + "6e" * 8192 + "02"),
)


class Read(NamedTuple):
    """Holds bytes that Kafka's serialiser never writes, and what its deserialiser makes of them."""

    data: str
    new: str | None
    old: str | None
    latest: bool


READ_ONLY = (
    Read("6f6c640103", None, "old", True),
    Read("6f6c640003", None, "old", False),
    Read("6e65770004", "new", None, False),
    Read("6e65770104", "new", None, True),
    Read("066e65776f6c640005", "new", "old", False),
    Read("066e65776f6c640105", "new", "old", True),
)
