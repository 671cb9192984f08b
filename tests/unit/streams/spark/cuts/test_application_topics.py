"""Test what a cut learns of an application from its topology, or from names and offsets alone."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from streams import App, Store, serdes
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.runtime.changelogs.window_expiry import WindowExpiry, to_metadata_entries
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.spark.cuts.application_topics import (
    StoreChangelog,
    infer_group_topics,
    list_app_topics,
    resolve_store_positions,
)
from streams.spark.cuts.cut import Cut, StoreCut

KAFKA_STREAMS = base64.b64encode(struct.pack(">bqi", 2, 1_700_000_000_000, 0)).decode()
"""The bytes of TopicPartitionMetadata.encode: version, partition time, no processor metadata."""


def at(offset: int, **stores: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, encode_metadata(stores, 17))


def words(**settings: Any) -> App:
    app = App("a", **settings)
    stream = app.stream("lines", key=serdes.string, value=serdes.string)
    grouped = stream.group_by(lambda _, word: word, key=serdes.string)
    grouped.count(store="c").to_stream().to("out")
    stream.group_by_key().count(store=Store.persistent("gone", logged=False))
    return app


def test_of_a_topology() -> None:
    shape = list_app_topics(words(deserialization_handler="dead_letter:dead"))
    assert shape.sources == {"lines", "a-c-repartition"}
    assert shape.outputs == frozenset({"a-c-repartition", "out", "dead"})
    assert shape.store_changelogs == {
        "c": StoreChangelog("a-c-changelog", frozenset({"a-c-repartition"}))
    }
    assert shape.writes_transactions
    assert not list_app_topics(words(processing_guarantee="at_least_once")).writes_transactions


def test_outputs_that_a_function_chooses_are_not_known() -> None:
    app = words()
    app.stream("more", key=serdes.string, value=serdes.string).to(lambda record: record.value)
    assert list_app_topics(app).outputs is None


def test_a_table_whose_topic_takes_the_place_of_a_changelog_is_at_the_offset_of_that() -> None:
    app = App("a", topology_optimization="all")
    table = app.table("rows", key=serdes.string, value=serdes.string, store="t")
    table.to_stream().to("out")
    shape = list_app_topics(app)
    assert shape.store_changelogs == {
        "t": StoreChangelog("rows", frozenset({"rows"}), is_source_topic=True)
    }
    found, unnamed = resolve_store_positions(
        shape.store_changelogs, {Partition("rows", 1): at(7)}, {"rows": 2}
    )
    assert found == {"t": StoreCut("rows", {0: 0, 1: 7}, {0: 0, 1: 7})}
    assert not unnamed


def test_positions_are_those_of_the_last_commit_and_0_before_the_first() -> None:
    tables = {"s": StoreChangelog("a-s-changelog", frozenset({"left", "right"}))}
    offsets = {
        Partition("left", 0): at(3, s=5),
        Partition("right", 0): at(9, s=8),  # by then `left` was not in the topology
        Partition("left", 1): at(4, s=6),
        Partition("other", 1): at(4, s=60),  # of another sub-topology
    }
    found, unnamed = resolve_store_positions(tables, offsets, {"a-s-changelog": 3})
    assert found == {"s": StoreCut("a-s-changelog", {0: 8, 1: 6, 2: 0})}
    assert not unnamed


def test_a_cut_names_up_to_where_a_changelog_had_expired() -> None:
    entries = to_metadata_entries("s", WindowExpiry(4))
    text = encode_metadata({"s": 9}, entries=entries)
    offsets = {Partition("left", 0): OffsetAndMetadata(3, text), Partition("left", 1): at(2, s=6)}
    tables = {"s": StoreChangelog("a-s-changelog", frozenset({"left"}))}
    found, _ = resolve_store_positions(tables, offsets, {"a-s-changelog": 2})
    assert found == {"s": StoreCut("a-s-changelog", {0: 9, 1: 6}, {0: 4})}
    cut = Cut(application_id="a", taken_ms=0, offsets={}, stores=found)
    assert Cut.from_json(cut.to_json()) == cut


@pytest.mark.parametrize("metadata", [KAFKA_STREAMS, "", "by hand"])
def test_where_offsets_name_no_position_it_is_said(metadata: str) -> None:
    tables = {"s": StoreChangelog("a-s-changelog", frozenset({"left"}))}
    offsets = {
        Partition("left", 0): at(3, s=5),
        Partition("left", 1): OffsetAndMetadata(2, metadata),
    }
    found, unnamed = resolve_store_positions(tables, offsets, {"a-s-changelog": 2})
    assert found == {"s": StoreCut("a-s-changelog", {0: 5, 1: 0})}
    assert unnamed == [("s", Partition("a-s-changelog", 1))]


def test_of_an_id_the_stores_are_those_that_the_offsets_name() -> None:
    topics = ["lines", "a-s-changelog", "a-old-changelog", "b-s-changelog", "a-s-repartition"]
    offsets = {Partition("lines", 0): at(3), Partition("a-s-repartition", 0): at(2, s=5)}
    shape = infer_group_topics("a", offsets, topics, ["a", "b"])
    assert shape.sources == {"lines", "a-s-repartition"}
    assert shape.store_changelogs == {
        "s": StoreChangelog("a-s-changelog", frozenset({"a-s-repartition"}))
    }
    assert shape.outputs is None


def test_of_a_kafka_streams_application_they_are_told_by_the_names_of_topics() -> None:
    topics = ["a-S-0000000003-changelog", "a-b-c-changelog", "a-changelog", "xa-s-changelog"]
    offsets = {Partition("lines", 0): OffsetAndMetadata(3, KAFKA_STREAMS)}
    shape = infer_group_topics("a", offsets, topics, ["a-b", "x"])
    assert shape.store_changelogs == {
        "S-0000000003": StoreChangelog(topics[0], frozenset({"lines"}))
    }
    assert infer_group_topics("a-b", offsets, topics, ["a"]).store_changelogs.keys() == {"c"}
