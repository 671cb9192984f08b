"""Test that a reset takes no topic for internal to an application that may be another's."""

from __future__ import annotations

from streams import App, serdes
from streams.commands.internal_topics import (
    find_internal_topics,
    find_topics_proven_own,
    list_topology_topics,
)
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.offsets.offset_metadata import encode_metadata

COUNTS, TOTALS = "billing-counts-changelog", "billing-monthly-totals-changelog"
BY_CUSTOMER = "billing-monthly-by-customer-repartition"
TOPICS = [COUNTS, TOTALS, BY_CUSTOMER, "billing-ledger", "billingcounts-changelog", "in"]


def build_app(store: str) -> App:
    app = App("billing")
    stream = app.stream("in", key=serdes.string, value=serdes.string)
    stream.group_by(lambda _, value: value, key=serdes.string).count(store=store).to_stream()
    return app


def test_by_the_id_alone_a_name_that_no_longer_id_fits_is_the_applications() -> None:
    assert find_internal_topics("billing", TOPICS) == ([COUNTS], [BY_CUSTOMER, TOTALS])


def test_what_another_group_claims_is_not_asked_about() -> None:
    assert find_internal_topics("billing", TOPICS, ["billing", "billing-monthly"]) == (
        [COUNTS],
        [],
    )


def test_committed_offsets_prove_stores_and_repartition_topics() -> None:
    committed = {
        Partition("in", 0): OffsetAndMetadata(3, encode_metadata({"monthly-totals": 4})),
        Partition(BY_CUSTOMER, 0): OffsetAndMetadata(3, ""),
    }
    found = find_internal_topics("billing", TOPICS, committed=committed)
    assert found == ([COUNTS, TOTALS, BY_CUSTOMER], [])


def test_a_changelog_among_the_inputs_is_anothers() -> None:
    committed = {Partition(TOTALS, 0): OffsetAndMetadata(3, encode_metadata({"counts": 4}))}
    assert TOTALS in find_internal_topics("billing", TOPICS, committed=committed).undecided


def test_a_topology_names_its_topics_exactly_changelogs_first() -> None:
    topology = build_app("monthly-totals").topology()
    topics = [*TOPICS, "billing-monthly-totals-repartition"]
    assert list_topology_topics(topology) == {TOTALS, "billing-monthly-totals-repartition"}
    found = find_internal_topics("billing", topics, topology=topology)
    assert found.own == [TOTALS, "billing-monthly-totals-repartition"]
    assert found.undecided == [COUNTS, BY_CUSTOMER]


def test_a_name_that_a_longer_id_fits_is_anothers_unless_a_committed_offset_proves_it() -> None:
    generated = "billing-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog"
    of_steps_of_another = "billing-monthly-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog"
    alone = (
        "billing-counts-counts-changelog"  # of "billing-counts", or of the store "counts-counts"
    )
    topics = [TOTALS, BY_CUSTOMER, COUNTS, generated, of_steps_of_another, alone]
    assert find_topics_proven_own("billing", topics, {}) == {COUNTS, generated}
    committed = {Partition("in", 0): OffsetAndMetadata(3, encode_metadata({"counts-counts": 4}))}
    assert find_topics_proven_own("billing", topics, committed) == {COUNTS, generated, alone}
