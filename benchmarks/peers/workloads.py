"""List what is measured: topologies, their inputs, and the ways that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.peers import expected
from benchmarks.peers.expected import Expected, Inputs
from benchmarks.peers.inputs import Feed
from streams.settings.choices import ProcessingGuarantee

LOOP, MILLRACE, KAFKA_STREAMS = "loop", "millrace", "kafka-streams"
TRANSACTIONAL = "kafka-streams-transactional"
"""Kafka Streams with `enable.transactional.statestores` (KIP-892), which is off by default."""
WAYS = (LOOP, MILLRACE, KAFKA_STREAMS, TRANSACTIONAL)
PARTITIONS = 4
COMMIT_INTERVAL_MS = 100
CACHE_MAX_BYTES = 10 << 20
"""What Millrace's stores keep of committed values by default."""
EXACTLY_ONCE: ProcessingGuarantee = "exactly_once_v2"
GUARANTEES: tuple[ProcessingGuarantee, ...] = (EXACTLY_ONCE, "at_least_once")
CHANGELOG_SUFFIX = "-counts-changelog"
"""Follows the application's name in the topic of its changed counts, where a loop writes it."""
KEYS, MANY_KEYS, FOREIGN_KEYS = 10_000, 1_000_000, 1_000
_ROWS = 9_000
"""Of 10,000 keys of a stream, so many find a row in the table."""
_LEFT_PER_RIGHT = 10
_RIGHT_DELAY_MS = 20
_TABLE_LEAD_MS = 60_000
"""A table that does not change is older than the records that are joined with it."""
_BURST_RECORDS = 5 * KEYS


@dataclass(frozen=True)
class Workload:
    """Describes a topology to measure on some inputs."""

    name: str
    topology: str
    feeds: tuple[Feed, ...]
    expect: Callable[[Inputs], Expected]
    has_loop: bool = False
    has_internal_topic: bool = False
    has_store: bool = True

    @property
    def records(self) -> int:
        """Return how many records all inputs have."""
        return sum(feed.records for feed in self.feeds)

    @property
    def ways(self) -> tuple[str, ...]:
        """Return the ways to run it."""
        left_out = {
            *(() if self.has_loop else (LOOP,)),
            *(() if self.has_store else (TRANSACTIONAL,)),
        }
        return tuple(way for way in WAYS if way not in left_out)


def create_workloads(records: int) -> list[Workload]:
    """List the workloads, with so many records in the left input; quick ones have more.

    A run that lasts a second would be over before a JVM has compiled what it runs.
    """
    left, longer = Feed(records, KEYS), Feed(4 * records, KEYS)
    many = Feed(max(2 * records, MANY_KEYS), MANY_KEYS)
    bursts = Feed(records, KEYS, burst_records=_BURST_RECORDS)
    closed = Feed(records, KEYS, is_closed=True)
    rows = Feed(_ROWS, KEYS, delay_ms=-_TABLE_LEAD_MS)
    clicks = Feed(records // _LEFT_PER_RIGHT, KEYS, _LEFT_PER_RIGHT, _RIGHT_DELAY_MS)
    half, other_half = (Feed(records // 2, KEYS, delay_ms=ms) for ms in (0, _RIGHT_DELAY_MS))
    parents = Feed(FOREIGN_KEYS, FOREIGN_KEYS, delay_ms=-_TABLE_LEAD_MS)
    return [
        Workload("map", "map", (longer,), expected.expect_mapped, has_loop=True, has_store=False),
        Workload("count of 10k keys", "count", (longer,), expected.expect_counts, has_loop=True),
        Workload("count of 1M keys", "count", (many,), expected.expect_counts, has_loop=True),
        Workload("tumbling window count", "window", (left,), expected.expect_window_counts),
        Workload(
            "re-key and count",
            "rekey",
            (left,),
            expected.expect_group_counts,
            has_internal_topic=True,
        ),
        Workload("stream-table left join", "stream-table", (left, rows), expected.expect_enriched),
        Workload(
            "stream-stream join",
            "stream-stream",
            (left, clicks),
            expected.expect_joined_streams,
        ),
        Workload("session window count", "session", (bursts,), expected.expect_sessions),
        Workload(
            "table-table join",
            "table-table",
            (half, other_half),
            expected.expect_joined_tables,
        ),
        Workload(
            "foreign-key join",
            "foreign-key",
            (left, parents),
            expected.expect_joined_by_foreign_key,
            has_internal_topic=True,
        ),
        Workload("suppress", "suppress", (closed,), expected.expect_closed_windows),
    ]


def choose_workloads(workloads: Sequence[Workload], only: str) -> list[Workload]:
    """Return the workloads whose names contain one of the texts in `only`, between commas.

    Raises ValueError if there is none.
    """
    chosen = [each for each in workloads if any(text in each.name for text in only.split(","))]
    if not chosen:
        names = "; ".join(each.name for each in workloads)
        raise ValueError(f"no workload is named like {only!r}: there are {names}")
    return chosen


def choose_ways(chosen: str) -> tuple[str, ...]:
    """Return the ways named in `chosen`, between commas. Raises ValueError for another name."""
    names = chosen.split(",")
    for name in names:
        if name not in WAYS:
            raise ValueError(f"no way is named {name!r}: there are {', '.join(WAYS)}")
    return tuple(way for way in WAYS if way in names)


def plan_runs(workload: Workload, rounds: int, chosen: Sequence[str] = WAYS) -> Iterator[str]:
    """Yield the chosen ways to run one after the other; none is always the first of its round."""
    ways = tuple(way for way in workload.ways if way in chosen)
    if not ways:
        return
    for number in range(rounds):
        first = number % len(ways)
        yield from ways[first:] + ways[:first]
