"""Test that a wrong number of partitions is explained by what committed offsets prove."""

from __future__ import annotations

from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.runtime.assigning.wrong_counts import FollowedSources, explain_wrong_count
from streams.runtime.offsets.offset_metadata import encode_metadata
from tests.unit.streams.runtime.fakes import FakeAdmin, Script
from tests.unit.streams.runtime.kafka import Kafka

CHANGELOG, INPUT = "a-c-changelog", Partition("in", 0)
FOLLOWED = FollowedSources("c", {"in": 2})


def explain(*, changelog_id: str | None = None, input_id: str | None = None) -> str:
    """Explain the count, where offsets were committed with these ids, by default those of now."""
    kafka = Kafka({CHANGELOG: 3, "in": 2})
    metadata = encode_metadata(
        {"c": 5},
        topic_ids={"in": hash_topic_id(input_id or kafka.topic_ids["in"])},
        changelog_ids={"c": hash_topic_id(changelog_id or kafka.topic_ids[CHANGELOG])},
    )
    committed = CommittedOffsets({INPUT: OffsetAndMetadata(7, metadata)}, [])
    return explain_wrong_count(
        *(CHANGELOG, (3, 2), {"in": 2}, FOLLOWED, FakeAdmin(kafka, Script())), lambda _: committed
    )


def test_a_changelog_that_was_made_again_is_named_and_no_input_is_blamed() -> None:
    text = explain(changelog_id="former")
    assert f"internal topic {CHANGELOG!r} has 3 partitions and the topology needs 2" in text
    assert "it was deleted, and made again by somebody else than the application" in text
    assert "input 'in'" not in text
    assert "What these have lost by their retention is lost to the state" in text


def test_an_input_that_was_made_again_is_named() -> None:
    assert "input 'in' was deleted and made again with another number" in explain(input_id="former")


def test_an_input_whose_offsets_were_deleted_with_it_is_named_while_there_is_state() -> None:
    kafka = Kafka({CHANGELOG: 3, "in": 2})
    nothing = CommittedOffsets({}, [])
    arguments = (
        CHANGELOG,
        (3, 2),
        {"in": 2},
        FOLLOWED,
        FakeAdmin(kafka, Script()),
        lambda _: nothing,
    )
    assert "added partitions to it or to the inputs" in explain_wrong_count(*arguments)
    kafka.load(Partition(CHANGELOG, 1), ("key", "value"))
    text = explain_wrong_count(*arguments)
    assert "the offsets of input 'in' are gone while its state is there, as when it was" in text
    assert "make it again with 3" in text


def test_an_input_without_an_offset_is_not_blamed_where_another_step_reads_it() -> None:
    kafka = Kafka({CHANGELOG: 3, "in": 2, "idle": 2})
    kafka.load(Partition(CHANGELOG, 1), ("key", "value"))
    committed = CommittedOffsets({INPUT: OffsetAndMetadata(7, "")}, [])
    admin, inputs = FakeAdmin(kafka, Script()), {"in": 2, "idle": 2}
    arguments = (CHANGELOG, (3, 2), inputs, FOLLOWED, admin, lambda _: committed)
    assert "offsets of input" not in explain_wrong_count(*arguments)


def test_an_input_without_an_offset_is_not_blamed_where_its_tasks_have_another_one() -> None:
    kafka = Kafka({CHANGELOG: 3, "in": 2, "idle": 2})
    kafka.load(Partition(CHANGELOG, 1), ("key", "value"))
    committed = CommittedOffsets({INPUT: OffsetAndMetadata(7, "")}, [])
    admin, inputs = FakeAdmin(kafka, Script()), {"in": 2, "idle": 2}
    joined = FollowedSources("c", inputs)
    arguments = (CHANGELOG, (3, 2), inputs, joined, admin, lambda _: committed)
    assert "offsets of input" not in explain_wrong_count(*arguments)


def test_what_committed_offsets_prove_goes_before_an_offset_that_is_not_there() -> None:
    kafka = Kafka({CHANGELOG: 3, "in": 2, "idle": 2})
    kafka.load(Partition(CHANGELOG, 1), ("key", "value"))
    metadata = encode_metadata(
        {}, topic_ids={"idle": hash_topic_id("former")}, changelog_ids={"c": hash_topic_id("x")}
    )
    committed = CommittedOffsets({Partition("idle", 0): OffsetAndMetadata(7, metadata)}, [])
    admin, inputs = FakeAdmin(kafka, Script()), {"in": 2, "idle": 2}
    arguments = (CHANGELOG, (3, 2), inputs, FOLLOWED, admin, lambda _: committed)
    assert "input 'idle' was deleted and made again" in explain_wrong_count(*arguments)


def test_without_evidence_all_reasons_are_named_with_the_numbers() -> None:
    assert "added partitions to it or to the inputs ('in' has 2)" in explain()


def test_brokers_that_do_not_answer_hide_no_refusal() -> None:
    kafka, script = Kafka({CHANGELOG: 3, "in": 2}), Script()

    def fail(_: object) -> CommittedOffsets:
        raise OutcomeUnknown("no answer")

    text = explain_wrong_count(
        CHANGELOG, (3, 2), {"in": 2}, FOLLOWED, FakeAdmin(kafka, script), fail
    )
    assert "the topology needs 2" in text


def test_it_offers_the_reset() -> None:
    assert "millrace group reset" in explain(changelog_id="former")
