"""Test that a handler that raises gets an error response with a code for each entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordinator.api import (
    add_partitions_to_txn,
    describe_groups,
    find_coordinator,
    list_groups,
    offset_fetch,
    write_txn_markers,
)
from coordinator.api.absent_features import ABSENT_FEATURE_APIS
from coordinator.api.router import Api
from coordinator.errors import Code
from tests.unit.coordinator.api.client import Client, run


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Send a request to an API whose handler raises an unforeseen exception."""

    def handle(request: Any, context: Any) -> Any:
        raise ZeroDivisionError("a test")

    def ask(api: Api, version: int, **given: Any) -> Any:
        monkeypatch.setattr(api, "handle_request", handle)
        answers: list[Any] = []

        async def scenario() -> None:
            answers.append(Client(tmp_path).ask(api.API_KEY, version, **given))

        run(scenario())
        return answers[0]

    return ask


WORDS = {"name": "words", "partitions": (0, 3)}
UNKNOWN = Code.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", range(4))
def test_add_partitions_to_txn_is_refused_for_each_partition(ask: Any, version: int) -> None:
    answer = ask(
        add_partitions_to_txn,
        version,
        v3_and_below_transactional_id="app",
        v3_and_below_producer_id=0,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[WORDS],
    )
    [topic] = answer.results_by_topic_v3_and_below
    codes = {p.partition_index: p.partition_error_code for p in topic.results_by_partition}
    assert (topic.name, codes) == ("words", {0: UNKNOWN, 3: UNKNOWN})


def test_add_partitions_to_txn_of_several_transactions_is_refused_at_the_top(ask: Any) -> None:
    producer = {"transactional_id": "app", "producer_id": 0, "producer_epoch": 0}
    answer = ask(add_partitions_to_txn, 4, transactions=[{**producer, "topics": [WORDS]}])
    assert (answer.error_code, answer.results_by_transaction) == (UNKNOWN, ())


@pytest.mark.parametrize("version", describe_groups.VERSIONS)
def test_describe_groups_is_refused_for_exactly_the_groups_asked_for(
    ask: Any, version: int
) -> None:
    answer = ask(describe_groups, version, groups=["a", "b"], include_authorized_operations=False)
    found = [(group.group_id, group.error_code, group.group_state) for group in answer.groups]
    assert found == [("a", UNKNOWN, ""), ("b", UNKNOWN, "")]


@pytest.mark.parametrize("version", find_coordinator.VERSIONS)
def test_find_coordinator_is_refused_for_each_key(ask: Any, version: int) -> None:
    answer = ask(find_coordinator, version, key="a", key_type=0, coordinator_keys=["a", "b"])
    entries = answer.coordinators if version >= 4 else [answer]
    found = [(entry.error_code, entry.node_id, entry.host, entry.port) for entry in entries]
    assert found == [(UNKNOWN, -1, "", -1)] * (2 if version >= 4 else 1)
    if version >= 4:
        assert [entry.key for entry in entries] == ["a", "b"]


@pytest.mark.parametrize("version", list_groups.VERSIONS)
def test_list_groups_is_refused_at_the_top(ask: Any, version: int) -> None:
    answer = ask(list_groups, version, states_filter=(), types_filter=())
    assert (answer.error_code, answer.groups) == (UNKNOWN, ())


@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
def test_offset_fetch_is_refused_where_its_version_has_room(ask: Any, version: int) -> None:
    topic = {"name": "words", "topic_id": None, "partition_indexes": (0, 3)}
    group = {"member_id": None, "member_epoch": -1, "topics": [topic]}
    answer = ask(
        offset_fetch,
        version,
        group_id="a",
        topics=[topic],
        groups=[{"group_id": "a", **group}, {"group_id": "b", **group}],
        require_stable=False,
    )
    if version >= 8:
        found = [(group.group_id, group.error_code, group.topics) for group in answer.groups]
        assert found == [("a", UNKNOWN, ()), ("b", UNKNOWN, ())]
    elif version >= 2:
        assert (answer.error_code, answer.topics) == (UNKNOWN, ())
    else:
        [found_topic] = answer.topics
        codes = [(p.partition_index, p.error_code) for p in found_topic.partitions]
        assert codes == [(0, UNKNOWN), (3, UNKNOWN)]


def test_write_txn_markers_is_refused_for_each_partition_of_each_marker(ask: Any) -> None:
    topic = {"name": "words", "partition_indexes": (0, 3)}
    marker = {"producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0}
    markers = [{**marker, "producer_id": i, "topics": [topic]} for i in (5, 6)]
    answer = ask(write_txn_markers, 1, markers=markers)
    found = {
        (marker.producer_id, topic.name, partition.partition_index): partition.error_code
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }
    assert found == {(i, "words", j): UNKNOWN for i in (5, 6) for j in (0, 3)}


def test_moves_between_directories_are_refused_for_each_topic_even_one_without_partitions(
    ask: Any,
) -> None:
    topics = [{"name": "words", "partitions": (0, 3)}, {"name": "x", "partitions": ()}]
    api = ABSENT_FEATURE_APIS["AlterReplicaLogDirs"]
    answer = ask(api, 2, dirs=[{"path": "/x", "topics": topics}])
    found = {
        topic.topic_name: {p.partition_index: p.error_code for p in topic.partitions}
        for topic in answer.results
    }
    assert found == {"words": {0: UNKNOWN, 3: UNKNOWN}, "x": {}}
