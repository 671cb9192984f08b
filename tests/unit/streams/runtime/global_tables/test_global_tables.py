"""Test copies of global tables on fakes: where they resume, when they are rebuilt, their waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from state.errors import StoreCorrupted
from state.memory import MemoryDisk
from state.replica import TopicReplica
from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError, serdes
from streams.common.topic_partitions import Partition
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import AuthenticationError, OutcomeUnknown
from streams.graph.nodes import GlobalTableSpec, StoreSpec
from streams.processor.global_store import ReadOnlyGlobalStore
from streams.runtime.global_tables.added_partitions import AddedPartitionCheck
from streams.runtime.global_tables.copied_records import RecordCopier
from streams.runtime.global_tables.tables import GlobalTables
from streams.runtime.tasks.store_opening import create_codecs
from streams.settings.exception_handlers import ExceptionHandler, ExceptionHandlers
from tests.unit.streams.runtime.fakes import (
    Clock,
    FakeAdmin,
    FakeConsumer,
    FakeProducer,
    Script,
    StopWhen,
)
from tests.unit.streams.runtime.kafka import Kafka

RATES = "rates"
ONE, TWO = Partition(RATES, 0), Partition(RATES, 1)
DAY_S = 86_400.0
SPEC = GlobalTableSpec(
    name="the-table",
    topic=RATES,
    store=StoreSpec(name="store", key=serdes.string, value=serdes.string),
)


class Damaged(MemoryDisk):
    """Stands in for a disk that can't be read until it is cleared."""

    is_damaged = False

    def read_checkpoint(self) -> StoreCheckpoint | None:
        if self.is_damaged:
            raise StoreCorrupted("store", "path", "as the test has it")
        return super().read_checkpoint()

    def clear_all_data(self) -> None:
        self.is_damaged = False
        super().clear_all_data()


class Dying(MemoryDisk):
    """Stands in for a disk whose process is killed in its `dies_in`-th write, which is lost."""

    dies_in = 0

    def write_changes(
        self,
        changes: Mapping[bytes, bytes | None],
        checkpoint: StoreCheckpoint,
        new_keys: Collection[bytes] = (),
    ) -> None:
        self.dies_in -= 1
        if self.dies_in == 0:
            raise SystemExit("kill -9")
        super().write_changes(changes, checkpoint, new_keys)


class Copying:
    """Holds a topic, and the disk with the copy that successive workers continue."""

    def __init__(self, disk: MemoryDisk | None = None, *, batch: int = 10_000) -> None:
        self.kafka = Kafka({RATES: 2})
        self.clock = Clock()
        self.script = Script()
        self.security = CurrentSecurity(PLAINTEXT)
        self.disk = disk or Damaged()
        self.producers: list[FakeProducer] = []
        """The producers of dead letters of all workers."""
        self.lost_topics: set[str] = set()
        """Topics to which no producer can deliver."""
        self._batch = batch

    def load(self, *pairs: tuple[str | None, str | None], partition: Partition = ONE) -> None:
        self.kafka.load(partition, *pairs)

    def worker(
        self,
        handler: ExceptionHandler = "fail",
        timeout_ms: int = 300_000,
        consumer: type[Slowly] | None = None,
    ) -> GlobalTables:
        """Return the global tables of a new worker on the same disk."""
        make = Slowly if consumer is None else consumer
        return GlobalTables(
            [SPEC],
            {"store": TopicReplica("store", self.disk, create_codecs(SPEC.store))},
            create_consumer=lambda: make(self.kafka, self.script, self.clock, self._batch),
            copier=self._create_copier(handler, timeout_ms),
            admin=FakeAdmin(self.kafka, self.script),
            host=self.clock,
            timeout_ms=timeout_ms,
            security=self.security,
        )

    def _create_copier(self, handler: ExceptionHandler, timeout_ms: int) -> RecordCopier:
        return RecordCopier(
            ExceptionHandlers(deserialization=handler),
            create_producer=self._create_producer,
            list_topics=FakeAdmin(self.kafka, self.script).fetch_partition_counts,
            host=self.clock,
            timeout_ms=timeout_ms,
        )

    def _create_producer(self) -> FakeProducer:
        self.producers.append(FakeProducer(self.kafka, self.script, transactional=False))
        self.producers[-1].lost_topics = self.lost_topics
        return self.producers[-1]

    def begun(self, handler: ExceptionHandler = "fail") -> GlobalTables:
        """Return the global tables of a worker that has copied all records of the topic."""
        tables = self.worker(handler)
        tables.copy_existing_records(StopWhen(self.clock))
        assert tables.wait_until_caught_up(StopWhen(self.clock))
        return tables


class Slowly(FakeConsumer):
    """Stands in for a consumer that returns at most `batch` records at a time."""

    def __init__(self, kafka: Kafka, script: Script, clock: Clock, batch: int) -> None:
        super().__init__(kafka, script, clock)
        self._batch = batch

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        return super().poll_records(min(records_max, self._batch), timeout_s)


def rows(tables: GlobalTables) -> dict[str, str]:
    store = tables.find_read_only_store("store")
    assert store is not None
    return dict(store.all())


def test_a_copy_has_the_latest_of_each_key_of_all_partitions() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"), ("a", "3"), (None, "nobody"))
    copying.load(("c", "4"), ("d", "5"), ("c", None), partition=TWO)
    assert rows(copying.begun()) == {"a": "3", "b": "2", "d": "5"}


def test_a_copy_follows_its_topic() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    tables = copying.begun()
    copying.load(("a", None), ("b", "2"))
    tables.copy_new_records()
    assert rows(tables) == {"b": "2"}


def test_after_a_restart_a_copy_goes_on_where_it_stopped() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    copying.begun().stop_copying()
    copying.load(("b", None), ("c", "3"))
    tables = copying.begun()
    assert tables.copied_records == 2
    assert rows(tables) == {"a": "1", "c": "3"}


def test_a_worker_killed_in_the_middle_of_copying_goes_on_where_its_disk_is() -> None:
    disk = Dying()
    disk.dies_in = 3
    copying = Copying(disk, batch=2)
    copying.load(*((f"k{n}", str(n)) for n in range(8)))
    with pytest.raises(SystemExit):
        copying.worker().copy_existing_records(StopWhen(copying.clock))
    copying.load(("k0", None), ("k7", None))
    tables = copying.begun()
    assert tables.copied_records == 6  # Four of the ten were copied before.
    assert rows(tables) == {f"k{n}": str(n) for n in range(1, 7)}


def test_a_topic_that_was_made_again_is_copied_anew() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    copying.begun().stop_copying()
    copying.kafka.delete(RATES)
    copying.kafka.create_topic(RATES, 2)
    copying.load(("b", "two"), ("c", "3"), ("d", "4"))
    assert rows(copying.begun()) == {"b": "two", "c": "3", "d": "4"}


def test_a_topic_that_was_cut_above_the_copy_is_copied_anew() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    copying.begun().stop_copying()
    copying.load(("a", None), ("b", "2"), ("c", "3"))
    copying.kafka.logs[ONE].start_offset = 3
    assert rows(copying.begun()) == {"c": "3"}


def test_a_copy_that_is_older_than_deletions_are_kept_is_made_anew() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(DAY_S)
    copying.load(("c", "3"))
    entries = copying.kafka.logs[ONE].entries
    entries[0] = entries[2]  # as compaction would leave it
    tables = copying.begun()
    assert tables.copied_records == 3
    assert rows(tables) == {"b": "2", "c": "3"}


def test_a_copy_that_was_there_when_nothing_more_came_is_not_made_anew_however_old() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(10 * DAY_S)
    assert copying.begun().copied_records == 0


def test_a_copy_whose_worker_was_up_all_the_time_is_as_young_as_its_last_record() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    tables = copying.begun()
    copying.clock.advance_monotonic_clock(DAY_S)
    copying.load(("b", "2"))
    tables.copy_new_records()
    tables.stop_copying()
    copying.clock.advance_monotonic_clock(DAY_S / 2)
    copying.load(("c", "3"))
    assert copying.begun().copied_records == 1


def test_a_copy_that_was_caught_up_at_a_start_is_as_young_as_that_start() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(DAY_S / 2)
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(DAY_S / 2)
    copying.load(("b", "2"))
    assert copying.begun().copied_records == 1


def test_a_copy_that_was_killed_on_its_way_is_as_old_as_before() -> None:
    disk = Dying()
    copying = Copying(disk, batch=1)
    copying.load(("a", "1"))
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(DAY_S / 2)
    copying.load(("b", "2"), ("c", "3"))
    disk.dies_in = 2
    with pytest.raises(SystemExit):
        copying.worker().copy_existing_records(StopWhen(copying.clock))
    copying.clock.advance_monotonic_clock(DAY_S / 2)
    assert copying.begun().copied_records == 3


def test_a_topic_that_is_not_compacted_keeps_its_deletions() -> None:
    copying = Copying()
    copying.kafka.topic_settings[RATES] = {"cleanup.policy": "delete"}
    copying.load(("a", "1"))
    copying.begun().stop_copying()
    copying.clock.advance_monotonic_clock(10 * DAY_S)
    copying.load(("b", "2"))
    assert copying.begun().copied_records == 1


def test_a_damaged_copy_is_made_anew() -> None:
    disk = Damaged()
    copying = Copying(disk)
    copying.load(("a", "1"), ("b", "2"))
    copying.begun().stop_copying()
    disk.is_damaged = True
    tables = copying.begun()
    assert tables.copied_records == 2
    assert rows(tables) == {"a": "1", "b": "2"}


def test_a_partition_that_was_added_is_copied_from_its_start_and_the_others_go_on() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    copying.begun().stop_copying()
    copying.kafka.grow(RATES, 3)
    copying.load(("gone", "0"), ("c", "3"), partition=Partition(RATES, 2))
    copying.kafka.logs[Partition(RATES, 2)].start_offset = 1
    tables = copying.begun()
    assert tables.copied_records == 1
    assert rows(tables) == {"a": "1", "b": "2", "c": "3"}


def test_a_partition_that_is_added_while_a_topic_is_copied_is_taken_up_and_kept() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    tables = copying.begun()
    copying.kafka.grow(RATES, 4)
    copying.load(("c", "3"), partition=Partition(RATES, 3))
    tables.copy_new_records()
    assert rows(tables) == {"a": "1"}, "they are counted at intervals"
    copying.clock.advance_monotonic_clock(300)
    tables.copy_new_records()
    assert rows(tables) == {"a": "1", "c": "3"}
    tables.stop_copying()
    again = copying.begun()
    assert (again.copied_records, rows(again)) == (0, {"a": "1", "c": "3"})


def test_partitions_are_counted_again_soon_where_no_broker_answers() -> None:
    clock, counts = Clock(), {RATES: 2}

    def fetch() -> Mapping[str, int]:
        if not counts:
            raise OutcomeUnknown("nobody answers")
        return counts

    check = AddedPartitionCheck(fetch, clock.monotonic_s, 300)
    counts.clear()
    clock.advance_monotonic_clock(300)
    assert check.find_grown_topics_if_due({RATES: 2}) == {}
    counts[RATES] = 3
    assert check.find_grown_topics_if_due({RATES: 2}) == {}
    clock.advance_monotonic_clock(1)
    assert check.find_grown_topics_if_due({RATES: 2}) == {RATES: 3}


def test_a_topic_that_is_cut_while_it_is_copied_ends_the_worker_with_the_partition() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    tables = copying.begun()
    copying.kafka.logs[ONE].entries.clear()
    with pytest.raises(StreamsError, match=r"rates-0|rates\[0\].*Start again"):
        tables.copy_new_records()


def test_a_topic_that_is_cut_while_it_is_copied_at_the_start_does_not_stand_still() -> None:
    copying = Copying(batch=1)
    copying.load(("eur", "1"), ("gbp", "2"), ("sek", "3"))

    class Cut(Slowly):
        def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
            taken = super().poll_records(records_max, timeout_s)
            copying.kafka.logs[ONE].start_offset = 3
            return taken

    with pytest.raises(StreamsError, match=r"rates\[0\] has lost the position of its copy"):
        copying.worker(consumer=Cut).copy_existing_records(StopWhen(copying.clock))


def make_again(copying: Copying, *pairs: tuple[str, str]) -> None:
    copying.kafka.delete(RATES)
    copying.kafka.create_topic(RATES, 2)
    copying.load(*pairs)


REFUSAL = "topic 'rates' of 'store' is another topic of the same name.*copied anew"


def test_nothing_is_copied_of_a_topic_that_the_consumer_sees_made_again() -> None:
    copying = Copying()
    consumers: list[FakeConsumer] = []

    class Seeing(Slowly):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            consumers.append(self)

    copying.load(("a", "1"), ("b", "2"))
    tables = copying.worker(consumer=Seeing)
    tables.copy_existing_records(StopWhen(copying.clock))
    consumers[0].seen_topic_ids = {RATES: copying.kafka.topic_ids[RATES]}
    tables.copy_new_records()
    make_again(copying, ("b", "two"), ("c", "3"), ("d", "4"))
    consumers[0].seen_topic_ids = {RATES: copying.kafka.topic_ids[RATES]}
    with pytest.raises(StreamsError, match=REFUSAL):
        tables.copy_new_records()
    assert rows(tables) == {"a": "1", "b": "2"}
    tables.stop_copying()
    assert rows(copying.begun()) == {"b": "two", "c": "3", "d": "4"}


def test_the_ids_of_the_topics_are_fetched_again_after_an_interval() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    tables = copying.begun()
    make_again(copying, ("b", "two"), ("c", "3"), ("d", "4"))
    copying.clock.advance_monotonic_clock(300)
    with pytest.raises(StreamsError, match=REFUSAL):
        tables.copy_new_records()
    assert rows(tables) == {"a": "1", "b": "2"}


def test_a_topic_made_again_with_fewer_records_is_told_as_another_topic() -> None:
    copying = Copying()
    copying.load(("a", "1"), ("b", "2"))
    tables = copying.begun()
    make_again(copying, ("b", "two"))
    with pytest.raises(StreamsError, match=REFUSAL):
        tables.copy_new_records()


def test_what_the_serdes_refuse_ends_the_worker_and_names_step_record_and_serde() -> None:
    copying = Copying()
    copying.kafka.append_record(ONE, b"k", b"\xff", 0)
    with pytest.raises(StreamsError, match=r"'the-table' can't read rates\[0\]@0 .*value=string"):
        copying.worker().copy_existing_records(StopWhen(copying.clock))


def test_a_stop_while_copying_ends_it_and_the_next_worker_goes_on() -> None:
    copying = Copying(batch=2)
    copying.load(*((f"k{n}", str(n)) for n in range(10)))
    stop = StopWhen(copying.clock)
    tables = copying.worker()
    stop.condition = lambda: tables.copied_records >= 4
    tables.copy_until_stopped(stop)
    assert not tables.wait_until_caught_up(stop)
    assert copying.script.calls[-1] == "consumer.close"
    assert copying.begun().copied_records == 6


def test_a_stop_while_no_broker_answers_ends_it() -> None:
    copying = Copying()
    for at in range(1, 10):
        copying.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("nobody answers"), at=at)
    stop = StopWhen(copying.clock)
    stop.condition = lambda: copying.script.calls.count("admin.fetch_latest_offsets") == 3
    copying.worker().copy_until_stopped(stop)
    assert copying.script.calls[-1] == "consumer.close"


def test_a_broker_that_is_away_at_the_start_is_asked_again() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    for call in (
        "admin.fetch_partition_counts",
        "admin.fetch_latest_offsets",
        "admin.fetch_topic_settings",
    ):
        copying.script.fail(call, OutcomeUnknown("nobody answers"))
    assert rows(copying.begun()) == {"a": "1"}
    assert not copying.script.list_unmade_failures()


def test_a_broker_that_stays_away_ends_the_worker_after_its_time() -> None:
    copying = Copying()
    for at in range(1, 200):
        copying.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("nobody answers"), at=at)
    began_s = copying.clock.elapsed_s
    with pytest.raises(StreamsError, match="no answer for 5 s: nobody answers"):
        copying.worker(timeout_ms=5_000).copy_existing_records(StopWhen(copying.clock))
    assert 5 <= copying.clock.elapsed_s - began_s < 6


def test_a_copy_that_stands_still_ends_the_worker_and_says_how_far_it_is() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    tables = copying.worker(timeout_ms=5_000, consumer=Stuck)
    with pytest.raises(StreamsError, match=r"\['rates'\] have stood still for 5 s, with lags"):
        tables.copy_existing_records(StopWhen(copying.clock, 20_000))


RENEWALS = ["admin.renew_client", "consumer.renew_client"]


def test_a_refusal_while_copying_at_the_start_ends_the_worker_at_once() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    stop = StopWhen(copying.clock)

    def refuse_after_a_while() -> bool:
        if copying.script.calls.count("consumer.poll_records") == 3:
            copying.security.note_refusal("the broker refuses user 'a'")
        return False

    stop.condition = refuse_after_a_while
    with pytest.raises(AuthenticationError, match="refuses user 'a'"):
        copying.worker(consumer=Stuck).copy_until_stopped(stop)
    assert copying.script.calls.count("consumer.poll_records") == 3
    assert copying.script.calls[-1] == "consumer.close"


def test_a_refusal_before_any_answer_is_looked_for_and_ends_the_worker() -> None:
    copying = Copying()
    for at in range(1, 10):
        copying.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("nobody answers"), at=at)
    stop = StopWhen(copying.clock)

    def refuse_when_asked() -> bool:
        if copying.security.is_in_doubt:
            copying.security.note_refusal("the broker refuses user 'a'")
        return False

    stop.condition = refuse_when_asked
    with pytest.raises(AuthenticationError, match="refuses user 'a'"):
        copying.worker().copy_until_stopped(stop)
    assert copying.script.calls.count("admin.fetch_latest_offsets") == 1


def test_new_connections_are_taken_up_before_any_answer() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    copying.script.fail("admin.fetch_latest_offsets", OutcomeUnknown("nobody answers"))
    tables = copying.worker()
    copying.security.replace_security(PLAINTEXT)
    tables.copy_existing_records(StopWhen(copying.clock))
    calls = copying.script.filter_calls(*RENEWALS, "admin.fetch_partition_counts")
    assert calls == [*RENEWALS, *["admin.fetch_partition_counts"] * 2]
    assert rows(tables) == {"a": "1"}


def test_new_connections_are_taken_up_while_copying_at_the_start() -> None:
    copying = Copying(batch=1)
    copying.load(("a", "1"), ("b", "2"), ("c", "3"))
    tables = copying.worker()
    stop = StopWhen(copying.clock)

    def replace_in_between() -> bool:
        if tables.copied_records == 1 and copying.security.version == 0:
            copying.security.replace_security(PLAINTEXT)
        return False

    stop.condition = replace_in_between
    tables.copy_existing_records(stop)
    calls = copying.script.filter_calls(*RENEWALS, "consumer.poll_records")
    poll = "consumer.poll_records"
    assert calls == [poll, *RENEWALS, poll, poll]
    assert rows(tables) == {"a": "1", "b": "2", "c": "3"}


def test_a_copy_that_has_caught_up_takes_up_new_connections_and_leaves_refusals() -> None:
    copying = Copying()
    tables = copying.begun()
    copying.security.replace_security(PLAINTEXT)
    copying.load(("a", "1"))
    tables.copy_new_records()
    assert copying.script.filter_calls(*RENEWALS) == RENEWALS
    copying.security.note_refusal("the broker refuses user 'a'")
    copying.load(("b", "2"))
    tables.copy_new_records()
    assert copying.script.filter_calls(*RENEWALS) == RENEWALS
    assert rows(tables) == {"a": "1", "b": "2"}


def test_no_further_lag_is_asked_for_where_no_broker_tells_one() -> None:
    copying = Copying()
    copying.load(("a", "1"))
    asked: list[Partition] = []

    class Unanswered(Slowly):
        def measure_lag(self, partition: Partition) -> int | None:
            asked.append(partition)
            return None if len(asked) == 1 else super().measure_lag(partition)

    tables = copying.worker(consumer=Unanswered)
    tables.copy_existing_records(StopWhen(copying.clock))
    assert asked == [ONE, ONE, TWO]


class Stuck(Slowly):
    """Stands in for a consumer that returns no records although the topic has some."""

    def poll_records(self, records_max: int, timeout_s: float) -> list[Any]:
        self._clock.advance_monotonic_clock(timeout_s)
        return []


def test_a_topic_that_does_not_exist_is_named() -> None:
    copying = Copying()
    copying.kafka.delete(RATES)
    with pytest.raises(StreamsError, match=r"topics \['rates'\] of global tables do not exist"):
        copying.worker().copy_existing_records(StopWhen(copying.clock))


def test_a_global_table_can_be_read_and_not_written() -> None:
    copying = Copying()
    copying.load(("a1", "1"), ("a2", "2"), ("b", "3"))
    store = copying.begun().find_read_only_store("store")
    assert isinstance(store, ReadOnlyGlobalStore)
    assert store.get("a1") == "1"
    assert [key for key, _ in store.prefix_scan("a")] == ["a1", "a2"]
    assert [key for key, _ in store.reverse_range("a2", "b")] == ["b", "a2"]
    with pytest.raises(AttributeError, match="put: 'store' is a global table"):
        store.put("a", "b")
