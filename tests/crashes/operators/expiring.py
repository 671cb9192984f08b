"""Define a table whose rows expire and that a stream looks up, and aggregates that expire.

All records come from one topic, many of them out of order: when a row expires follows from the
order of its partition. A record is `["row", value]`, or `["event", number]`.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from streams import App, Store
from tests.crashes.operators.given import BATCH, JSON, SEEN, STEP_MS, Contents, Sent, Truth, results

TOPICS = PROGRESS = ("in",)
HASHED = ()
PARTITIONS = 2
KEYS = 100
TTL_MS = 600
_A_STEP = 3
"""So many records come at once: changelogs are to be longer than a batch of a restore."""
_LATE_MS = (0, 0, 150, 0, 400, 650)
"""How much older than its place some records are."""
_AHEAD_EVERY = 30
_AHEAD_MS = (500, 100)
"""Rows that move time on and are overwritten at once by an older one: what has expired by the first
is not to be there again when only the second is in the changelog."""


def build(application_id: str, source: str, target: str, **settings: Any) -> App:
    app = App(application_id, **settings)
    stream = app.stream(source, **JSON)
    results(target, SEEN)(stream)
    rows = stream.filter(lambda key, value: _is("row", value)).map_values(lambda value: value[1])
    events = stream.filter(lambda key, value: _is("event", value)).map_values(lambda v: v[1])
    table = rows.to_table(store=Store.persistent("rows", ttl=TTL_MS))
    grouped = events.group_by_key()
    some = table.filter(lambda key, row: row % 2 == 0, store=Store.persistent("even", ttl=TTL_MS))
    counts = grouped.count(store=Store.persistent("counts", ttl=TTL_MS))
    sums = grouped.reduce(
        lambda so_far, number: so_far + number,
        store=Store.persistent("sums", ttl=TTL_MS, caching=False),
    )
    joined = events.left_join(table, lambda event, row: [event, row])
    results(target, "joined")(joined)
    for operator, made in {"rows": table, "even": some, "counts": counts, "sums": sums}.items():
        results(target, operator)(made.to_stream())
    return app


def _is(kind: str, value: Any) -> bool:
    """Tell whether a record is of `kind`; those that only move time on are of none."""
    return isinstance(value, list) and value[0] == kind


def first(begin_ms: int) -> list[Sent]:
    return []


def batch(begin: int, begin_ms: int) -> list[Sent]:
    sent: list[Sent] = []
    for n in range(begin * _A_STEP, (begin + BATCH) * _A_STEP):
        key = f"key-{n * (n // 13 + 1) % KEYS}"
        row = None if n % 11 == 5 else n
        value = ["event", n] if n % 3 == 0 else ["row", row]
        at_ms = begin_ms + n // _A_STEP * STEP_MS - _LATE_MS[n * 5 % 7 % len(_LATE_MS)]
        sent.append(Sent("in", key, value, at_ms))
        if n % _AHEAD_EVERY == 0:
            sent += [Sent("in", key, ["row", n], at_ms + ms) for ms in _AHEAD_MS]
    return sent


def truth(sent: Sequence[Sent]) -> Truth:
    once: dict[str, Contents] = {}
    last: dict[str, Contents] = {name: {} for name in ("rows", "even", "counts", "sums")}
    joined: dict[str, list[Any]] = defaultdict(list)
    for partition in range(PARTITIONS):
        mine = [each for each in sent if zlib.crc32(each.key.encode()) % PARTITIONS == partition]
        _take(mine, joined, last)
    in_any_order = {"joined": {key: sorted(values, key=repr) for key, values in joined.items()}}
    kept = {name: {k: v for k, v in of.items() if v is not None} for name, of in last.items()}
    return Truth(once=once, last=kept, in_any_order=in_any_order)


def _take(sent: Sequence[Sent], joined: dict[str, list[Any]], last: dict[str, Contents]) -> None:
    """Add to the truth what comes of the records of one partition."""
    rows: dict[str, tuple[Any, int]] = {}
    events: dict[str, tuple[list[int], int]] = {}
    row_ms = event_ms = -1
    for _, key, (kind, value), at_ms in sent:
        if kind == "row":
            if value is not None and at_ms <= row_ms - TTL_MS:
                continue
            row_ms = max(row_ms, at_ms)
            rows[key] = value, at_ms
            last["rows"][key] = value
            last["even"][key] = value if value is not None and value % 2 == 0 else None
            continue
        row, row_at_ms = rows.get(key, (None, -1))
        joined[key].append([value, row if row_at_ms > row_ms - TTL_MS else None])
        event_ms = max(event_ms, at_ms)
        numbers, last_ms = events.get(key, ([], -1))
        if last_ms <= event_ms - TTL_MS:
            numbers, last_ms = [], -1
        events[key] = numbers, last_ms = [*numbers, value], max(last_ms, at_ms)
        last["counts"][key], last["sums"][key] = len(numbers), sum(numbers)
