"""Test what look-ups in global tables found: replayed as the ledger tells it, or refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streams import App, serdes
from streams.errors import AuthorizationError, ConfigError, StreamsError, UserError
from streams.graph.nodes import GlobalTableSpec, SinkNode
from streams.ledger import LookupState, encode_global_lookup_states, encode_order
from streams.spark.reconciliation.derivation.determinism import Determinism, StepDeterminism
from streams.spark.reconciliation.derivation.global_topics import (
    BrokerTopicRead,
    GlobalTableHistory,
    find_ends_seen_by_steps,
)
from streams.spark.reconciliation.derivation.ledger_candidates import (
    LedgerCandidate,
    LedgerReplay,
    LedgerTasks,
)
from streams.spark.reconciliation.derivation.ledger_order import (
    LedgerOrder,
    PartitionOrder,
    TaskCommit,
)
from streams.spark.reconciliation.derivation.ledger_replay import replay_numbered_records
from streams.spark.reconciliation.derivation.replay import ReplayWork
from streams.spark.reconciliation.derivation.replayed_lookups import (
    GlobalTableHistories,
    GlobalTableSource,
    ReplayedLookups,
)
from streams.spark.reconciliation.derivation.row_schemas import NUMBERED
from streams.spark.source.fetching import RawBatch
from tests.unit.streams.spark.reconciliation.derived.test_ledger_replay import batches, rows_of

Record = tuple[int, int, bytes | None, bytes | None]
"""Partition, offset, key and value."""
RATES: list[Record] = [(0, 0, b"eur", b"1"), (0, 4, b"eur", b"2"), (0, 5, b"usd", b"3")]


@dataclass
class FakeTopicRead:
    """Represents the topic of a global table, of which compaction has `removed` some records."""

    records: Sequence[Record]
    removed: int = 0
    reads: list[int] = field(default_factory=list)

    def iterate_batches(self) -> Iterable[RawBatch]:
        self.reads.append(1)
        for partition, offset, key, value in self.records:
            yield RawBatch("rates", partition, [key], [value], [offset], [7], None)

    def count_removed_offsets(self) -> int:
        return self.removed


def build_app(processing: str = "fail") -> App:
    app = App("priced", processing_handler=processing)
    rates = app.global_table("rates", store="rates", key=serdes.string, value=serdes.string)
    app.stream("orders", key=serdes.string, value=serdes.string).left_join(
        rates, lambda order, rate: f"{order}{rate}", key=lambda key, _: key, name="find"
    ).to("priced", value=serdes.string)
    return app


def table_of(app: App) -> GlobalTableSpec:
    [table] = app.topology().global_tables
    return table


def replay(
    keys: Sequence[str],
    lookups: Mapping[int, list[LookupState]],
    read: FakeTopicRead,
    *,
    app: App | None = None,
    per_commit: int = 2,
) -> list[str]:
    """Replay orders of these keys, so many in a commit; return what they were joined with."""
    app = app or build_app()
    count = -(-len(keys) // per_commit)
    commits = [
        TaskCommit(
            {"orders": min((number + 1) * per_commit, len(keys))},
            encode_order([(0, min(per_commit, len(keys) - number * per_commit))]),
            {"find": encode_global_lookup_states(1, lookups[number])} if number in lookups else {},
        )
        for number in range(count)
    ]
    rows = [
        (key.encode(), b"@", "orders", 0, at, at, at // per_commit, at % per_commit)
        for at, key in enumerate(keys)
    ]
    [sub] = app.topology().subtopologies
    tables = {"rates": GlobalTableSource(table_of(app), read)}
    work = ReplayWork(sub, app.config.handlers, global_tables=tables)
    made = rows_of(replay_numbered_records((work, {0: commits}), batches(NUMBERED, rows)))
    return [row["value"].decode() for row in made]


def test_each_look_up_finds_what_the_table_had_then() -> None:
    read = FakeTopicRead(RATES)
    lookups = {
        0: [LookupState(0, (1,)), LookupState(1, (5,))],
        1: [LookupState(0, (4,))],  # another worker, whose copy was behind
        2: [LookupState(0, (6,))],
    }
    found = replay(["eur", "eur", "eur", "usd", "usd", "gbp"], lookups, read)
    assert found == ["@1", "@2", "@1", "@None", "@3", "@None"]
    assert len(read.reads) == 1


def test_rows_that_were_deleted_and_records_that_nobody_can_read_are_no_rows() -> None:
    records: list[Record] = [
        (0, 0, b"eur", b"1"),
        (0, 1, b"eur", None),
        (0, 2, None, b"5"),
        (0, 3, b"usd", b"2"),
        (0, 4, b"usd", b"\xff"),
        (0, 5, b"\xff", b"6"),
    ]
    history = GlobalTableHistory(table_of(build_app()), FakeTopicRead(records))
    assert history.find_row(b"eur", (1,)) == (b"1", 7)
    assert history.find_row(b"eur", (6,)) is None
    assert history.find_row(b"usd", (6,)) == (b"2", 7)
    assert history.find_row(b"\xff", (6,)) is None


def test_of_a_compacted_topic_a_key_without_an_old_record_is_not_known() -> None:
    history = GlobalTableHistory(table_of(build_app()), FakeTopicRead(RATES, removed=2))
    assert history.find_row(b"eur", (1,)) == (b"1", 7)
    for key in (b"usd", b"gbp"):
        with pytest.raises(ConfigError, match="2 records were removed by compaction"):
            history.find_row(key, (5,))


def test_a_key_in_two_partitions_is_not_known_when_both_were_copied() -> None:
    records: list[Record] = [(0, 0, b"eur", b"1"), (1, 0, b"eur", b"2")]
    history = GlobalTableHistory(table_of(build_app()), FakeTopicRead(records))
    assert history.find_row(b"eur", (1, 0)) == (b"1", 7)
    assert history.find_row(b"eur", (0, 1)) == (b"2", 7)
    assert history.find_row(b"eur", (0,)) is None  # before the second partition was added
    with pytest.raises(ConfigError, match="several partitions"):
        history.find_row(b"eur", (1, 1))


@pytest.mark.parametrize("processing", ["fail", "skip"])
def test_what_is_not_known_is_refused_whatever_a_handler_makes_of_it(processing: str) -> None:
    app = build_app(processing)
    with pytest.raises(ConfigError, match="does not tell what step 'find' found in global table"):
        replay(["eur"], {}, FakeTopicRead(RATES), app=app)
    states = {0: [LookupState(0, (0,))]}
    with pytest.raises(ConfigError, match=r"65 75 72 .* is not known"):
        replay(["eur"], states, FakeTopicRead(RATES, removed=1), app=app)


def test_the_topic_is_needed_up_to_the_last_state_of_the_steps_that_join_with_it() -> None:
    def commit(**lookups: str) -> TaskCommit:
        return TaskCommit({}, None, lookups)

    order: LedgerOrder = {
        0: [
            commit(
                find=encode_global_lookup_states(
                    5, [LookupState(0, (3, 9)), LookupState(4, (7, 9))]
                )
            ),
            commit(find=encode_global_lookup_states(5, [LookupState(0, (4, 11))])),
        ],
        1: [commit(other=encode_global_lookup_states(6, [LookupState(0, (99, 99))])), commit()],
    }
    assert find_ends_seen_by_steps(order, ["find"]) == ({0: 7, 1: 11}, {5})


def test_damaged_look_ups_and_orders_are_refused_by_name() -> None:
    commit = TaskCommit({"orders": 1}, "?", {"find": "?"})
    with pytest.raises(ConfigError, match="the ledger is damaged: of step 'find'"):
        find_ends_seen_by_steps({0: [commit]}, ["find"])
    source = GlobalTableSource(table_of(build_app()), FakeTopicRead(RATES))
    lookups = ReplayedLookups(GlobalTableHistories({"rates": source}))
    lookups.open_store("rates", "find")
    with pytest.raises(ConfigError, match="the ledger is damaged: of step 'find'"):
        lookups.begin_lookups_of_commit(commit.lookups)
    with pytest.raises(ConfigError, match="the ledger is damaged: of partition 3"):
        list(PartitionOrder([commit], 3).number_records_of_topic("orders", [0]))


@dataclass
class RefusedTopics:
    """Represents brokers that answer each request for a topic with `error`."""

    error: UserError
    asked: list[str] = field(default_factory=list)

    def plan_topic_read(
        self, topic: str, ends: Mapping[int, int], topic_id_hashes: Collection[int]
    ) -> BrokerTopicRead:
        self.asked.append(topic)
        raise self.error


def refuse_candidates(brokers: RefusedTopics, lookups: str) -> list[str]:
    """Return why two candidates that look rows up in one global table are refused."""
    app = build_app()
    [sub] = app.topology().subtopologies
    tasks = LedgerTasks(
        {0: [TaskCommit({"orders": 1}, encode_order([(0, 1)]), {"find": lookups})]},
        "",
        lambda frame: frame,
        brokers.plan_topic_read,
        {"rates": table_of(app)},
    )
    records: Any = dict.fromkeys(sub.sources)
    replayed = LedgerReplay(sub, records, app.config.handlers, {"orders": 1}, tasks)
    nodes = [node for node in sub.nodes if isinstance(node, SinkNode)]
    flow = StepDeterminism(Determinism.EACH, "find", "it looks up")
    _, refused = replayed.run_candidates(
        [LedgerCandidate("priced", nodes, flow), LedgerCandidate("again", nodes, flow)]
    )
    return [each.reason for _, each in refused]


def test_a_global_table_that_can_not_be_read_is_asked_for_once() -> None:
    brokers = RefusedTopics(StreamsError("no broker answers"))
    whys = refuse_candidates(brokers, encode_global_lookup_states(1, [LookupState(0, (1,))]))
    assert whys == ["it looks up; no broker answers"] * 2
    assert brokers.asked == ["rates"]


def test_candidates_are_refused_where_the_ledger_is_damaged() -> None:
    whys = refuse_candidates(RefusedTopics(StreamsError("not asked")), "?")
    assert len(whys) == 2
    assert "the ledger is damaged: of step 'find'" in whys[0]


def test_brokers_that_refuse_the_user_end_the_reconciliation() -> None:
    brokers = RefusedTopics(AuthorizationError("Read", "topic", "rates"))
    with pytest.raises(AuthorizationError):
        refuse_candidates(brokers, encode_global_lookup_states(1, [LookupState(0, (1,))]))
