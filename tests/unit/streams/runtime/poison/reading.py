"""List the places at which a record can't be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from streams import App, Store, serdes
from streams.common.message_headers import RepairedMessage
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.poison.operators import TEXT
from tests.unit.streams.runtime.poison.places import (
    ERRORS,
    TEN_MB,
    TOO_LARGE,
    Place,
    build_branches,
    build_operator,
    build_step,
    create_raising_serde,
    write_poison,
)
from tests.unit.streams.runtime.poison.running import IN, POISONED_KEY


def _write(
    key: bytes | None, value: bytes | None, time_ms: int | None = None
) -> Callable[[Kafka, int], None]:
    def append(kafka: Kafka, now_ms: int) -> None:
        kafka.append_record(IN, key, value, now_ms if time_ms is None else time_ms)

    return append


def _write_unreadable_names(kafka: Kafka, now_ms: int) -> None:
    message = kafka.append_record(IN, POISONED_KEY.encode(), b"v", now_ms)
    headers: Any = [("\ufffd", b"1"), ("\ufffd", b"2")]
    entries: list[Any] = kafka.logs[IN].entries
    entries[-1] = RepairedMessage(message, headers, 1)


def _build_table(app: App) -> None:
    rows = app.table("in", **TEXT, name="read", store=Store.in_memory("t", caching=False))
    rows.to_stream().to("out")


SHAPES: dict[str, Callable[[App], None]] = {
    "stream": build_step(lambda s: s.map_values(str.upper)),
    "stream with a store": build_operator("aggregate", str),
    "two inputs": lambda app: build_branches(
        app, lambda s: s.merge(app.stream("other", **TEXT)).map_values(str.upper)
    ),
    "join": build_operator("join", str),
    "table": _build_table,
}
KEY = POISONED_KEY.encode()
POISONS: dict[tuple[str, str], Callable[[Kafka, int], None]] = {
    ("refused value", "value"): _write(KEY, b"\xff"),
    ("refused value", "key"): _write(b"\xff", b"v"),
    ("negative time", "none"): _write(KEY, b"v", -1),
    ("negative time", "before 1970"): _write(KEY, b"v", -(10**15)),
    ("unreadable header", "two names"): _write_unreadable_names,
    ("too large", "value"): _write(KEY, b"\xff" * len(TOO_LARGE)),
    ("10 MB", "value"): _write(KEY, b"\xff" * len(TEN_MB)),
}


def list_reading_places() -> Iterator[Place]:
    """Yield each kind of source with each kind of record that can't be read."""
    for shape, build in SHAPES.items():
        for (kind, name), poison in POISONS.items():
            yield Place(
                *("deserialise", kind, f"{shape}, {name}", build, poison, "deserialization"),
                "read-source" if shape == "table" else "read",
                is_letter_fatal=kind in ("too large", "10 MB"),
                reaches_other_branch=False,
            )
    for error, make in ERRORS.items():
        yield Place(
            "deserialise",
            "exception",
            f"a serde raises {error}",
            _read_with(create_raising_serde(make)),
            write_poison,
            "deserialization",
            "read",
            reaches_other_branch=False,
        )
    yield Place(
        *("deserialise", "null key", "table", _build_table, _write(None, b"v"), "dropped"),
        reaches_other_branch=False,
    )


def _read_with(serde: Any) -> Callable[[App], None]:
    def build(app: App) -> None:
        stream = app.stream("in", key=serdes.string, value=serde, name="read")
        stream.to("after", value=serdes.string)
        stream.map_values(str.upper, value=serdes.string).to("out")

    return build
