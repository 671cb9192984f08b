"""Define windows of each kind, emitted at each commit, when they close, or by suppress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from streams import App, Windowed, serdes, until_time_limit, until_window_closes, windows
from tests.crashes.operators.given import (
    BATCH,
    CLOSING,
    GRACE_MS,
    JSON,
    KEYS,
    SEEN,
    STEP_MS,
    Contents,
    Sent,
    Truth,
    results,
)

TOPICS = PROGRESS = ("in",)
HASHED = ()
GROUPS = 7
SIZE_MS, ADVANCE_MS = 1_000, 500
DIFFERENCE_MS = 700
GAP_MS = 1_000
LIMIT_MS = 600
_PAUSE_EVERY, _PAUSE_MS = 60, 900


def append(key: str, value: int, seen: list[int]) -> list[int]:
    """Append to the aggregate in place.

    So one sees what a rolled-back transaction left in an object.
    """
    seen.append(value)
    return seen


def joined(key: str, one: list[int], other: list[int]) -> list[int]:
    return one + other


def build(application_id: str, source: str, target: str, **settings: Any) -> App:
    app = App(application_id, **settings)
    stream = app.stream(source, **JSON)
    results(target, SEEN)(stream)
    by_key = stream.group_by_key()
    kept: dict[str, Any] = {"value": serdes.json}
    tables = {
        "tumbling": by_key.windowed_by(windows.tumbling(SIZE_MS)).aggregate(
            list, append, store="tumbling", emit="on_close", **kept
        ),
        "hopping": by_key.windowed_by(windows.hopping(SIZE_MS, ADVANCE_MS)).count(store="hopping"),
        "sliding": by_key.windowed_by(windows.sliding(DIFFERENCE_MS)).count(
            store="sliding", emit="on_close"
        ),
        "session": by_key.windowed_by(windows.session(GAP_MS)).aggregate(
            list, append, merger=joined, store="session", emit="on_close", **kept
        ),
        "cogroup": by_key.cogroup(append)
        .cogroup(stream.map_values(lambda value: -value).group_by_key(), append)
        .aggregate(list, store="cogroup", **kept),
        "limited": by_key.count(store="counts").suppress(
            until_time_limit(LIMIT_MS), name="limited"
        ),
        "regrouped": stream.group_by(lambda key, value: group_of(key, value), key=serdes.string)
        .windowed_by(windows.tumbling(SIZE_MS, grace=GRACE_MS))
        .reduce(lambda old, new: old + new, store="regrouped")
        .suppress(until_window_closes(), name="final"),
    }
    for operator, table in tables.items():
        results(target, operator)(table.to_stream())
    return app


def group_of(key: str, value: int) -> str:
    return key if key.startswith(CLOSING) else str(value % GROUPS)


def first(begin_ms: int) -> list[Sent]:
    return []


def batch(begin: int, begin_ms: int) -> list[Sent]:
    return [
        Sent(
            "in",
            f"key-{n % KEYS}",
            n,
            begin_ms + n * STEP_MS + n // _PAUSE_EVERY * _PAUSE_MS,
        )
        for n in range(begin, begin + BATCH)
    ]


def truth(sent: Sequence[Sent]) -> Truth:
    by_key: dict[str, list[Sent]] = defaultdict(list)
    for each in sent:
        by_key[each.key].append(each)
    sums: Contents = defaultdict(int)
    for each in sent:
        sums[_window(str(each.value % GROUPS), _start(each), SIZE_MS)] += each.value
    found: dict[str, Contents] = {
        "tumbling": defaultdict(list),
        "hopping": defaultdict(int),
        "sliding": {},
        "session": {},
        "regrouped": sums,
    }
    for key, mine in by_key.items():
        for each in mine:
            found["tumbling"][_window(key, _start(each), SIZE_MS)].append(each.value)
            for start_ms in (_start(each, ADVANCE_MS) - ADVANCE_MS, _start(each, ADVANCE_MS)):
                found["hopping"][_window(key, start_ms, SIZE_MS)] += 1
        found["sliding"] |= _sliding(key, [each.timestamp_ms for each in mine])
        found["session"] |= _sessions(key, mine)
    last = {
        "hopping": dict(found.pop("hopping")),
        "limited": {key: len(mine) for key, mine in by_key.items()},
        "cogroup": {
            key: [signed for each in mine for signed in (-each.value, each.value)]
            for key, mine in by_key.items()
        },
    }
    return Truth(
        once={name: dict(each) for name, each in found.items()}, last=last, in_any_order={}
    )


def _start(sent: Sent, every_ms: int = SIZE_MS) -> int:
    return sent.timestamp_ms - sent.timestamp_ms % every_ms


def _window(key: str, start_ms: int, size_ms: int) -> str:
    return str(Windowed(key, start_ms, start_ms + size_ms))


def _sliding(key: str, times: list[int]) -> Contents:
    """Return the expected sliding windows.

    A window ends at each record, and one begins right behind it, if there is anything in it.
    """
    found: Contents = {}
    for start_ms in {start for at in times for start in (at - DIFFERENCE_MS, at + 1)}:
        inside = sum(start_ms <= at <= start_ms + DIFFERENCE_MS for at in times)
        if inside:
            found[_window(key, start_ms, DIFFERENCE_MS)] = inside
    return found


def _sessions(key: str, mine: list[Sent]) -> Contents:
    found: list[list[Sent]] = []
    for each in mine:
        if found and each.timestamp_ms - found[-1][-1].timestamp_ms <= GAP_MS:
            found[-1].append(each)
        else:
            found.append([each])
    return {
        str(Windowed(key, s[0].timestamp_ms, s[-1].timestamp_ms)): [e.value for e in s]
        for s in found
    }
