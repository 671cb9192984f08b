"""Test that expired rows look like deleted rows of Kafka Streams to those who look them up.

There they are deleted by records without a value, at the moments when ours expire.

Kafka Streams has no such tables: it gets the deletions among its input, and what comes too late for
ours not at all.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest

from tests.differential import ours
from tests.differential.compare import differences, refused
from tests.differential.description import Case, Piped, Step, Topology
from tests.differential.peer import Peer

TTL_MS = 20
ROWS, EVENTS = "in0", "in1"


def topology(*, ttl_ms: int | None, kind: str, caching: bool) -> Topology:
    store = {"name": "rows", "persistent": False, "caching": caching}
    if ttl_ms is not None:
        store["ttl_ms"] = ttl_ms
    counts = {"name": "counts", "persistent": False, "caching": caching}
    text = ("string", "string")
    steps = (
        Step("s1", "table", (), *text, {"topic": ROWS, "store": store}),
        Step("s2", "stream", (), *text, {"topic": EVENTS}),
        Step("s3", "map_values", ("s1",), *text, {"fn": "upper"}),
        Step("s4", "join_table", ("s2", "s1"), *text, {"kind": kind, "fn": "concat"}),
        Step("s5", "join_table", ("s2", "s3"), *text, {"kind": kind, "fn": "concat"}),
        Step("s6", "to", ("s4",), *text, {"topic": "looked-up"}),
        Step("s7", "to", ("s5",), *text, {"topic": "looked-up-mapped"}),
        Step("s8", "group_by_key", ("s4",), *text),
        Step("s9", "count", ("s8",), "string", "int64", {"store": counts}),
    )
    return Topology(steps, cache_bytes=10 * 1024 * 1024 if caching else 0)


def records(seed: int) -> list[Piped]:
    """Make records, many of them out of order, some to the millisecond when a row expires.

    Some rows are deleted.
    """
    drawn = random.Random(seed)
    time_ms = 100
    found = []
    for number in range(80):
        time_ms += drawn.choice((0, 0, 5, 5, 10, 30))
        topic = drawn.choice((ROWS, ROWS, EVENTS))
        at_ms = time_ms - drawn.choice((0, 0, 5, 15, 25))
        value = None if topic == ROWS and drawn.random() < 0.15 else f"v{number}"
        found.append(Piped(topic, drawn.choice("abcde"), value, at_ms))
    return found


def with_deletions(piped: Iterable[Piped]) -> Iterator[Piped]:
    """Yield the records with the deletions that a table without a ttl needs to get."""
    rows: dict[str, int] = {}
    now_ms = -1
    for each in piped:
        if each.topic == ROWS and each.key is not None:
            if each.value is not None and each.timestamp_ms <= now_ms - TTL_MS:
                continue
            now_ms = max(now_ms, each.timestamp_ms)
            rows[each.key] = each.timestamp_ms
            yield each
            for key in [key for key, at_ms in rows.items() if at_ms <= now_ms - TTL_MS]:
                del rows[key]
                yield Piped(ROWS, key, None, now_ms)
        else:
            yield each


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("caching", [False, True])
def test_rows_that_expire_are_found_no_more_as_if_they_were_deleted(
    peer: Peer, caching: bool, kind: str, seed: int
) -> None:
    given = records(seed)
    expiring = Case(topology(ttl_ms=TTL_MS, kind=kind, caching=caching), tuple(given))
    deleting = Case(topology(ttl_ms=None, kind=kind, caching=caching), tuple(with_deletions(given)))
    theirs = peer.run(deleting)
    assert refused(theirs) is None
    assert differences(expiring, theirs, ours.run(expiring)) == []
    kept = Case(topology(ttl_ms=None, kind=kind, caching=caching), tuple(given))
    assert differences(kept, theirs, ours.run(kept))  # it matters that rows expire
