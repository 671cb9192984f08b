"""Test each boundary in time that a page states, at the ms before it, on it and after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streams import (
    App,
    Store,
    TopologyTestDriver,
    serdes,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.windows import Windows

DOCS = Path(__file__).parents[3] / "docs"
TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}
START_MS = 10_000
"""The time of the record of key k, which each case is about."""

Happens = Callable[[int], bool]
"""Says whether it happens where the boundary is moved by so many ms."""


def run(build: Callable[[App], Any], *records: tuple[str, str, int]) -> TopologyTestDriver:
    """Process records, each a topic, a key and a time, in an application of its own."""
    app = App("boundaries")
    build(app)
    driver = TopologyTestDriver(app, stores="memory")
    for topic, key, at_ms in records:
        driver.topic(topic).pipe(key, topic, timestamp_ms=at_ms)
    return driver


def closes(kind: Windows, past_end_ms: int) -> Happens:
    """Return whether k's window has been emitted once another key's record moves the time on."""
    end_ms = START_MS + (5_000 if isinstance(kind, windows.TimeWindows) else 0)

    def build(app: App) -> None:
        grouped = app.stream("in", **TEXT).group_by_key().windowed_by(kind)
        grouped.count(emit="on_close").to_stream().to("out")

    def happens(offset_ms: int) -> bool:
        moved = end_ms + past_end_ms + offset_ms
        with run(build, ("in", "k", START_MS), ("in", "z", moved)) as driver:
            return any(window.key == "k" for window, _ in driver.topic("out").read_pairs())

    return happens


def is_late(kind: Windows, past_end_ms: int) -> Happens:
    """Return whether k's record is late once another key's record has moved the time on."""
    end_ms = START_MS + (5_000 if isinstance(kind, windows.TimeWindows) else 0)

    def happens(offset_ms: int) -> bool:
        late: list[Any] = []

        def build(app: App) -> None:
            app.stream("in", **TEXT).group_by_key().windowed_by(kind).count(on_late=late.append)

        moved = end_ms + past_end_ms + offset_ms
        with run(build, ("in", "z", moved), ("in", "k", START_MS)):
            return bool(late)

    return happens


def is_emitted(hold_back: Any, kind: Windows | None, after_ms: int) -> Happens:
    """Return whether `suppress` has emitted k's update once the time has moved on."""

    def build(app: App) -> None:
        table: Any
        if kind is None:
            table = app.table("in", **TEXT)
        else:
            table = app.stream("in", **TEXT).group_by_key().windowed_by(kind).count()
        table.suppress(hold_back).to_stream().to("out")

    def happens(offset_ms: int) -> bool:
        with run(build, ("in", "k", START_MS), ("in", "z", START_MS + after_ms + offset_ms)) as at:
            found = [key for key, _ in at.topic("out").read_pairs()]
            return any(getattr(key, "key", key) == "k" for key in found)

    return happens


def has_expired(store: Store, after_ms: int, kind: Windows | None = None) -> Happens:
    """Return whether k's entry is gone from the store once the time has moved on."""

    def build(app: App) -> None:
        if kind is None:
            app.table("in", **TEXT, store=store)
        else:
            app.stream("in", **TEXT).group_by_key().windowed_by(kind).count(store=store)

    def happens(offset_ms: int) -> bool:
        with run(build, ("in", "k", START_MS), ("in", "z", START_MS + after_ms + offset_ms)) as at:
            view: Any = at.store("s")
            if isinstance(kind, windows.SessionWindows):
                return not list(view.fetch("k"))
            return view.get("k") is None if kind is None else not list(view.fetch("k", 0, 10**9))

    return happens


def version_has_expired(offset_ms: int) -> bool:
    """Return whether a version that ended 10 ms after its start is gone 100 ms after its end."""

    def build(app: App) -> None:
        app.table("in", **TEXT, store=Store.versioned("s", history=100))

    end_ms = START_MS + 10
    records = [("in", "k", START_MS), ("in", "k", end_ms), ("in", "z", end_ms + 100 + offset_ms)]
    with run(build, *records) as driver:
        versions: Any = driver.store("s")
        return versions.get("k", end_ms - 1) is None


def joins(side_ms: int, **window: Any) -> Happens:
    """Return whether two records meet that are `side_ms`, and the offset, apart."""

    def build(app: App) -> None:
        other = app.stream("b", **TEXT)
        joined = app.stream("a", **TEXT).join(other, lambda one, two: one + two, **window)
        joined.to("out", value=serdes.string)

    def happens(offset_ms: int) -> bool:
        records = [("a", "k", START_MS), ("b", "k", START_MS + side_ms + offset_ms)]
        with run(build, *records) as driver:
            return bool(driver.topic("out").read_values())

    return happens


def late_record_is_not_kept(offset_ms: int) -> bool:
    """Return whether a record is gone that is 250 ms, and the offset, behind its stream's time."""

    def build(app: App) -> None:
        other = app.stream("b", **TEXT)
        joined = app.stream("a", **TEXT).join(other, lambda x, y: x + y, within=100, grace=50)
        joined.to("out", value=serdes.string)

    late_ms = START_MS - 250 - offset_ms
    with run(build, ("a", "z", START_MS), ("a", "k", late_ms), ("b", "k", late_ms)) as driver:
        return not driver.topic("out").read_values()


def is_joined_with_none(after_ms: int, *, at_once: bool = False) -> Happens:
    """Return whether a record that met nobody was joined with None."""

    def build(app: App) -> None:
        other = app.stream("b", **TEXT)
        joined = app.stream("a", **TEXT).left_join(
            other, lambda one, two: f"{one} {two}", within=100, grace=50, emit_interval=0
        )
        joined.to("out", value=serdes.string)

    def happens(offset_ms: int) -> bool:
        records = [("a", "k", START_MS), ("a", "z", START_MS + after_ms + offset_ms)]
        with run(build, *(reversed(records) if at_once else records)) as driver:
            return any(each.key == "k" for each in driver.topic("out").read_all())

    return happens


TUMBLING = windows.tumbling(5_000, grace=1_000)
SLIDING = windows.sliding(5_000, grace=1_000)
SESSION = windows.session(5_000, grace=1_000)
TIME_ROW = "| tumbling, hopping | is not part of the window | `grace` past the end, or later |"
SLIDING_ROW = "| sliding | is part of the window | more than `grace` past the end |"
SESSION_ROW = (
    "| session | is the session's last record, and a record `gap` later still joins | "
    "more than `gap` and `grace` past the end |"
)
SINCE, AFTER, UNTIL = (False, True, True), (False, False, True), (True, True, False)
"""What happens 1 ms before the boundary, on it, and 1 ms after it."""
STATED: list[tuple[str, str, Happens, tuple[bool, bool, bool]]] = [
    ("windows", TIME_ROW, closes(TUMBLING, 1_000), SINCE),
    ("windows", TIME_ROW, closes(windows.hopping(5_000, 5_000, grace=1_000), 1_000), SINCE),
    ("windows", TIME_ROW, is_late(TUMBLING, 1_000), SINCE),
    ("windows", SLIDING_ROW, closes(SLIDING, 1_000), AFTER),
    ("windows", SLIDING_ROW, is_late(SLIDING, 1_000), AFTER),
    ("windows", SESSION_ROW, closes(SESSION, 6_000), AFTER),
    ("windows", SESSION_ROW, is_late(SESSION, 6_000), AFTER),
    (
        "suppress",
        "time is `grace` past the window's end or later",
        is_emitted(until_window_closes(), TUMBLING, 6_000),
        SINCE,
    ),
    (
        "suppress",
        "Sliding windows and sessions include their ends, so they close a millisecond later",
        is_emitted(until_window_closes(), SESSION, 6_000),
        SINCE,
    ),
    (
        "suppress",
        "An update of a key waits for ten seconds of stream time, counted from its timestamp",
        is_emitted(until_time_limit(10_000), None, 10_000),
        SINCE,
    ),
    (
        "state",
        "its start is `retention` or more behind the store's time",
        has_expired(Store.in_memory("s", retention=10_000), 10_000, windows.tumbling(5_000)),
        SINCE,
    ),
    (
        "state",
        "its end is `retention` or more behind |",
        has_expired(Store.in_memory("s", retention=7_000), 7_000, windows.session(5_000)),
        SINCE,
    ),
    ("state", "where the next version begins, is `history` or more", version_has_expired, SINCE),
    (
        "state",
        "its timestamp is `ttl` or more behind",
        has_expired(Store.in_memory("s", ttl=100), 100),
        SINCE,
    ),
    (
        "joins",
        "`within=` is the largest difference of the two timestamps",
        joins(100, within=100),
        UNTIL,
    ),
    ("joins", "All ends are included", joins(5_000, before=-1_000, after=5_000), UNTIL),
    ("joins", "All ends are included", joins(1_000, before=-1_000, after=5_000), SINCE),
    ("joins", "as long as they are less than that behind", late_record_is_not_kept, SINCE),
    (
        "joins",
        "is past the window and the grace by a millisecond",
        is_joined_with_none(150),
        AFTER,
    ),
    (
        "joins",
        "time of the join by more than the window, it is joined with None at once",
        is_joined_with_none(100, at_once=True),
        AFTER,
    ),
]


@pytest.mark.parametrize("number", range(len(STATED)))
def test_a_boundary_is_where_the_page_says(number: int) -> None:
    page, sentence, happens, expected = STATED[number]
    text = " ".join((DOCS / f"{page}.md").read_text().split())
    assert sentence in text
    assert tuple(happens(offset_ms) for offset_ms in (-1, 0, 1)) == expected


def test_a_record_at_the_end_of_a_session_changes_what_suppress_has_emitted() -> None:
    def build(app: App) -> None:
        table = app.stream("in", **TEXT).group_by_key().windowed_by(SESSION).count()
        table.suppress(until_window_closes()).to_stream().to("out")

    ends_ms = START_MS + 6_000
    records = [("in", "k", START_MS), ("in", "z", ends_ms), ("in", "k", START_MS + 5_000)]
    with run(build, *records, ("in", "z", ends_ms + 10_000)) as driver:
        found = [(str(key), count) for key, count in driver.topic("out").read_pairs()]
    assert found == [
        ("[k@10000/10000]", 1),
        ("[k@10000/15000]", 2),
        ("[z@16000/16000]", 1),
    ]
