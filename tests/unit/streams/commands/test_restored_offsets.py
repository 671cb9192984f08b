"""Test which offsets `millrace group restore-offsets` commits, and that it leaves no input out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streams import App, serdes
from streams.commands.offset_restoration import Restoration, RestoredOffset
from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, WrittenRange, encode_transaction
from streams.runtime.offsets.offset_metadata import FirstStart, decode_metadata, encode_metadata
from streams.testing.cluster import InMemoryCluster
from tests.unit.streams.commands.in_memory_clients import InMemoryClients

IN, BETWEEN, CHANGELOG, OUT = "in", "a-counts-repartition", "a-counts-changelog", "out"
LEDGER = "a-ledger"


def build_counts(**settings: Any) -> App:
    """Build an application of two sub-topologies: one re-keys, the other counts."""
    app = App("a", **settings)
    words = app.stream(IN, key=serdes.string, value=serdes.string)
    words.group_by(lambda _, word: word, key=serdes.string).count(store="counts")
    return app


def build_join(**settings: Any) -> App:
    """Build an application whose task reads two inputs, and has one store."""
    app = App("a", **settings)
    users = app.table("users", key=serdes.string, value=serdes.string, store="users")
    orders = app.stream("orders", key=serdes.string, value=serdes.string)
    orders.join(users, lambda order, user: order + user).to(OUT, value=serdes.string)
    return app


class Application:
    """Holds the topics of an application, and does what its transactions would do."""

    def __init__(self, app: App, partitions: int = 1) -> None:
        self.app = app
        self.cluster = InMemoryCluster()
        self.offsets: dict[Partition, OffsetAndMetadata] = {}
        topology = app.topology()
        for sub in topology.subtopologies:
            for topic in sub.sources:
                self.cluster.create_topic(topic, partitions)
            for spec in sub.stores:
                self.cluster.create_topic(topology.restore_topic_of(spec.name), partitions)
        self.cluster.create_topic(LEDGER, 1)

    def load(self, topic: str, number: int = 0, count: int = 1) -> None:
        """Write records that no transaction of the application has written."""
        for _ in range(count):
            self.cluster.append_record(Partition(topic, number), b"k", b"v", 0)

    def commit(
        self, task: str, inputs: Mapping[str, int], written: str = "", *, in_ledger: bool = True
    ) -> None:
        """Commit a task: what it read, by topic, and a record that it wrote into a topic."""
        number = int(task.partition("_")[2])
        runs = {}
        if written:
            first = self.cluster.logs[Partition(written, number)].high_watermark
            self.load(written, number)
            runs[Partition(written, number)] = (WrittenRange(first, first),)
        read = {Partition(topic, number): offset for topic, offset in inputs.items()}
        ids = {topic: self.id_of(topic) for topic in inputs}
        if in_ledger:
            entry = LedgerTransaction(1, 0, {task: read}, runs, {task: 7}, ids)
            value = encode_transaction(entry)
            self.cluster.append_record(Partition(LEDGER, 0), b"t", value, 0)
        stores = self.app.topology().subtopologies[int(task[0])].stores
        ends = {
            s.name: self.cluster.logs[Partition(f"a-{s.name}-changelog", number)].high_watermark
            for s in stores
        }
        inputs_named = tuple(inputs) if len(inputs) > 1 else ()
        text = encode_metadata(ends, 5, None, 7, input_topics=inputs_named, topic_ids=ids)
        self.offsets |= {p: OffsetAndMetadata(offset, text) for p, offset in read.items()}

    def make_again(self, topic: str) -> None:
        """Delete a topic and create it again; brokers delete its committed offsets with it."""
        partitions = self.cluster.partition_counts.pop(topic)
        self.cluster.create_topic(topic, partitions)  # with new logs
        self.offsets = {p: held for p, held in self.offsets.items() if p.topic != topic}

    def id_of(self, topic: str) -> int:
        return hash_topic_id(self.cluster.topic_ids[topic])

    def restore(self, *made_again: str, accept: bool = False) -> dict[str, RestoredOffset]:
        """Return the plan by input; raises ConfigError where it may not be carried out."""
        clients = InMemoryClients(self.cluster)
        clients.__dict__["partition_counts"] = dict(self.cluster.partition_counts)
        committed = CommittedOffsets(self.offsets, [])
        restoration = Restoration(
            clients, self.app, committed, accept=accept, made_again=made_again
        )
        plan = list(restoration.plan_offsets())
        restoration.require_offsets(plan)
        return {str(each.partition): each for each in plan}

    def take(self, plan: Mapping[str, RestoredOffset]) -> None:
        """Commit a plan."""
        for each in plan.values():
            self.offsets[each.partition] = OffsetAndMetadata(each.then or 0, each.metadata)


def run_counts(partitions: int = 1, *, in_ledger: bool = True, **settings: Any) -> Application:
    """Return an application that has counted a record in each partition."""
    application = Application(build_counts(**settings), partitions)
    for number in range(partitions):
        application.load(IN, number, 2)
        application.commit(f"0_{number}", {IN: 2}, BETWEEN, in_ledger=in_ledger)
        application.commit(f"1_{number}", {BETWEEN: 1}, CHANGELOG, in_ledger=in_ledger)
    return application


def test_the_ledger_proves_the_offsets_of_tasks_without_stores_too() -> None:
    application = run_counts()
    application.offsets.clear()
    plan = application.restore()
    assert {name: each.then for name, each in plan.items()} == {f"{IN}[0]": 2, f"{BETWEEN}[0]": 1}
    application.take(plan)
    assert application.restore() == {}


def test_without_a_ledger_the_inputs_of_all_tasks_are_named_and_none_is_restored() -> None:
    application = run_counts(in_ledger=False)
    application.offsets.clear()
    with pytest.raises(ConfigError, match=rf"an offset for {IN}\[0\], {BETWEEN}\[0\].*group reset"):
        application.restore()
    # What has expired with all others is rather not of a topic that was made again.
    with pytest.raises(ConfigError, match=r"--accept`; if 'in' was made again, .*--made-again in"):
        application.restore()
    application.offsets = {Partition("elsewhere", 0): OffsetAndMetadata(1, "")}
    with pytest.raises(ConfigError, match=r"--made-again in`.*; if you know them, .*--accept`"):
        application.restore()


def test_an_input_whose_task_has_no_store_is_not_left_out_beside_accepted_ones() -> None:
    application = run_counts(in_ledger=False)
    application.offsets = {Partition(BETWEEN, 0): OffsetAndMetadata(1, "")}
    with pytest.raises(ConfigError, match=rf"an offset for {IN}\[0\], so"):
        application.restore(accept=True)
    application.offsets[Partition(IN, 0)] = OffsetAndMetadata(2, "")
    plan = application.restore(accept=True)
    assert {each.proof for each in plan.values()} == {"accepted: set by a tool"}
    application.take(plan)
    assert application.restore() == {}


def test_the_ledger_and_a_person_decide_side_by_side() -> None:
    application = run_counts(2)
    application.offsets = {Partition(IN, 1): OffsetAndMetadata(0, "")}
    plan = application.restore(accept=True)
    assert (plan[f"{IN}[0]"].then, plan[f"{IN}[1]"].then) == (2, 0)
    assert plan[f"{IN}[1]"].proof.startswith("accepted")
    assert not plan[f"{IN}[1]"].is_proven
    assert application.restore()[f"{IN}[1]"].then == 2


def test_an_application_that_was_never_started_needs_no_offset() -> None:
    application = Application(build_counts())
    application.load(IN, 0, 3)
    assert application.restore() == {}


def test_a_partition_that_the_ledger_never_names_begins_without_an_offset() -> None:
    application = Application(build_counts(), 2)
    application.load(IN, 1, 3)
    application.commit("0_0", {IN: 2}, BETWEEN)
    application.commit("1_0", {BETWEEN: 1}, CHANGELOG)
    application.offsets.clear()
    assert set(application.restore()) == {f"{IN}[0]", f"{BETWEEN}[0]"}


def test_a_partition_that_a_ledger_begun_later_does_not_name_is_not_proven() -> None:
    application = run_counts(2, in_ledger=False)
    application.commit("0_0", {IN: 2}, BETWEEN)
    application.commit("1_0", {BETWEEN: 2}, CHANGELOG)
    application.offsets.clear()
    with pytest.raises(ConfigError, match=rf"{IN}\[1\], {BETWEEN}\[1\], so"):
        application.restore()


def test_a_partition_that_was_added_by_what_other_offsets_say_needs_no_offset() -> None:
    application = run_counts(in_ledger=False)
    first = encode_metadata({}, first_start=FirstStart(1, 1), topic_ids={IN: application.id_of(IN)})
    application.offsets = {
        Partition(IN, 0): OffsetAndMetadata(2, first),
        Partition(BETWEEN, 0): OffsetAndMetadata(1, ""),
    }
    for number in (1, 2):
        application.cluster.partition_counts[IN] = number + 1
        application.cluster.logs |= {
            p: type(application.cluster.logs[Partition(IN, 0)])()
            for p in application.cluster.partitions_of(IN)
            if p not in application.cluster.logs
        }
        application.load(IN, number)
    assert set(application.restore(accept=True)) == {f"{BETWEEN}[0]"}


def test_a_partition_beside_others_that_the_application_committed_was_never_read() -> None:
    application = run_counts(2, in_ledger=False)
    application.offsets = {
        Partition(IN, 0): application.offsets[Partition(IN, 0)],
        Partition(BETWEEN, 0): OffsetAndMetadata(1, ""),
        Partition(BETWEEN, 1): OffsetAndMetadata(1, ""),
    }
    assert set(application.restore(accept=True)) == {f"{BETWEEN}[0]", f"{BETWEEN}[1]"}


def test_an_input_in_the_place_of_one_that_is_not_read_any_more_needs_no_offset() -> None:
    application = run_counts(in_ledger=False)
    application.offsets = {
        Partition("former", 0): application.offsets[Partition(IN, 0)],
        Partition(BETWEEN, 0): OffsetAndMetadata(1, ""),
    }
    assert set(application.restore(accept=True)) == {f"{BETWEEN}[0]"}


def test_an_input_without_a_record_begins_at_its_first_one() -> None:
    application = run_counts(in_ledger=False)
    application.make_again(IN)
    application.offsets = {Partition(BETWEEN, 0): OffsetAndMetadata(1, "")}
    plan = application.restore(accept=True)
    assert (plan[f"{IN}[0]"].then, plan[f"{IN}[0]"].proof) == (0, "no offset; no record")
    assert plan[f"{IN}[0]"].is_proven


def test_a_repartition_topic_that_was_made_again_is_not_in_order_as_long_as_it_is_empty() -> None:
    application = run_counts(in_ledger=False)
    application.make_again(BETWEEN)
    with pytest.raises(ConfigError, match=rf"an offset for {BETWEEN}\[0\], so"):
        application.restore()


def test_a_transaction_that_the_ledger_does_not_know_leaves_tasks_without_stores_unproven() -> None:
    application = run_counts()
    application.commit("0_0", {IN: 2}, BETWEEN, in_ledger=False)
    application.offsets.clear()
    with pytest.raises(ConfigError, match=rf"an offset for {IN}\[0\], so"):
        application.restore()


def test_an_offset_of_the_ledger_from_before_a_reset_proves_nothing() -> None:
    application = run_counts(2)
    application.load(IN, 0, 8)
    application.load(IN, 1, 8)
    application.commit("0_0", {IN: 9}, BETWEEN)
    for topic in (BETWEEN, CHANGELOG):
        application.make_again(topic)
    application.offsets.clear()
    with pytest.raises(ConfigError, match=rf"an offset for {IN}\[0\], {IN}\[1\], "):
        application.restore()
    # After the reset one task has begun, and writes where the former topic had records.
    application.commit("0_1", {IN: 3}, BETWEEN)
    application.commit("0_1", {IN: 4}, BETWEEN)
    application.commit("0_1", {IN: 5}, BETWEEN)
    application.commit("1_1", {BETWEEN: 3}, CHANGELOG)
    application.offsets.clear()
    with pytest.raises(ConfigError, match=rf"an offset for {IN}\[0\], "):
        application.restore()


def run_join() -> Application:
    application = Application(build_join())
    application.load("users")
    application.load("orders", count=2)
    application.commit("0_0", {"users": 1, "orders": 2}, "a-users-changelog")
    return application


@pytest.mark.parametrize("accept", [False, True])
def test_all_offsets_of_a_task_get_the_metadata_of_one_commit(accept: bool) -> None:
    application = run_join()
    del application.offsets[Partition("users", 0)]
    if accept:
        application.offsets[Partition("users", 0)] = OffsetAndMetadata(1, "")
    plan = application.restore(accept=accept)
    assert {name: (each.now, each.then) for name, each in plan.items()} == {
        "orders[0]": (2, 2),
        "users[0]": (1 if accept else None, 1),
    }
    for each in plan.values():
        told = decode_metadata(each.metadata)
        assert told.was_committed_with("users")
        assert told.was_committed_with("orders")
        assert told.topic_id_hash("orders") == application.id_of("orders")
        assert told.topic_id_hash("users") == application.id_of("users")
        assert told.changelog_id_hash("users") == application.id_of("a-users-changelog")
        assert told.position_of_store("users") == 1
        assert told.commit_number == 7
    assert decode_metadata(plan["orders[0]"].metadata).partition_time_ms == 5
    application.take(plan)
    assert application.restore() == {}
    del application.offsets[Partition("orders", 0)]
    assert set(application.restore()) == {"orders[0]", "users[0]"}


def test_an_input_that_is_not_decided_keeps_the_id_of_the_former_topic() -> None:
    application = run_join()
    former = application.id_of("orders")
    application.app = build_join(offset_out_of_range="earliest")
    kept = application.offsets[Partition("orders", 0)]
    application.make_again("orders")
    application.offsets = {
        Partition("orders", 0): kept,
        Partition("users", 0): OffsetAndMetadata(1, ""),
    }
    plan = application.restore(accept=True)
    told = decode_metadata(plan["orders[0]"].metadata)
    assert told.topic_id_hash("orders") == former != application.id_of("orders")


def test_an_input_made_again_begins_at_its_first_record_and_not_twice() -> None:
    application = run_join()
    application.make_again("orders")
    application.load("orders", count=4)
    plan = application.restore("orders")
    assert {name: each.then for name, each in plan.items()} == {"orders[0]": 0, "users[0]": 1}
    application.take(plan)
    assert application.restore() == {}
    with pytest.raises(ConfigError, match="names the topic that is there now"):
        application.restore("orders")


def test_an_input_that_another_offset_of_its_task_names_was_not_made_again() -> None:
    application = run_join()
    application.cluster.logs[Partition(LEDGER, 0)].entries.clear()
    del application.offsets[Partition("orders", 0)]
    with pytest.raises(ConfigError, match="another offset, or the ledger, names the topic that is"):
        application.restore("orders")


def test_an_input_that_was_added_is_not_named_by_the_others() -> None:
    application = Application(build_join())
    application.load("users")
    application.load("orders")
    application.commit("0_0", {"users": 1}, "a-users-changelog", in_ledger=False)
    application.load("a-users-changelog")
    plan = application.restore(accept=True)
    assert set(plan) == {"users[0]"}
    assert not decode_metadata(plan["users[0]"].metadata).was_committed_with("orders")


def test_an_input_made_again_is_not_taken_for_an_empty_one() -> None:
    application = run_join()
    application.make_again("orders")
    application.offsets.clear()
    with pytest.raises(ConfigError, match=r"an offset for orders\[0\], so"):
        application.restore()


def test_a_topic_that_the_ledger_knows_is_not_offered_as_made_again() -> None:
    application = run_counts()
    application.commit("0_0", {IN: 2}, BETWEEN, in_ledger=False)
    application.offsets.clear()
    with pytest.raises(ConfigError) as refused:
        application.restore()
    assert "--made-again" not in str(refused.value)
    assert "--accept" in str(refused.value)


def test_of_two_independent_counts_both_are_restored_or_none() -> None:
    app = App("a")
    for topic in ("one", "two"):
        stream = app.stream(topic, key=serdes.string, value=serdes.string)
        stream.group_by_key().count(store=f"of-{topic}")
    application = Application(app)
    for number, topic in enumerate(("one", "two")):
        application.load(topic)
        application.commit(f"{number}_0", {topic: 1}, f"a-of-{topic}-changelog")
    application.load("a-of-two-changelog")  # of a transaction that the ledger does not know
    application.offsets.clear()
    with pytest.raises(
        ConfigError, match=r"an offset for two\[0\], so nothing was committed, also"
    ):
        application.restore()
    application.offsets = {Partition("two", 0): OffsetAndMetadata(1, "")}
    plan = application.restore(accept=True)
    assert {name: each.is_proven for name, each in plan.items()} == {
        "one[0]": True,
        "two[0]": False,
    }
    application.take(plan)
    assert application.restore() == {}
