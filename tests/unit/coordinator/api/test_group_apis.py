"""Test that every version of the APIs of groups and offsets is answered with its own codes."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordinator.api import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from coordinator.errors import Code
from tests.unit.coordinator.api.apis import (
    JOIN,
    WORDS_ID,
    FakeBroker,
    commit,
    fetch,
    in_versions,
    joined,
)


@in_versions(find_coordinator)
@pytest.mark.parametrize(("key_type", "code"), [(0, 0), (1, 0), (2, Code.INVALID_REQUEST)])
def test_this_broker_coordinates_everything(version: int, key_type: int, code: int) -> None:
    response = FakeBroker().send(
        find_coordinator, version, key="a", key_type=key_type, coordinator_keys=["a"]
    )
    found = response.coordinators[0] if version >= 4 else response
    if version == 0:
        code = 0
    assert found.error_code == code
    assert found.port == (9092 if code == 0 else -1)


@in_versions(offset_commit)
def test_offset_commit(version: int) -> None:
    broker = FakeBroker()
    assert commit(broker, version) == {0: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}
    unknown = Code.UNKNOWN_TOPIC_ID if version >= 10 else Code.UNKNOWN_TOPIC_OR_PARTITION
    partition = {"partition_index": 0, "committed_offset": 7, "committed_metadata": None}
    topics = [{"name": "none", "topic_id": UUID(int=1), "partitions": [partition]}]
    assert commit(broker, version, topics=topics) == {0: unknown}
    no_group = Code.GROUP_ID_NOT_FOUND if version >= 9 else Code.ILLEGAL_GENERATION
    codes = commit(broker, version, group_id="none", generation_id_or_member_epoch=3, member_id="m")
    assert codes == {0: no_group, 9: Code.UNKNOWN_TOPIC_OR_PARTITION}


@in_versions(offset_fetch)
def test_offset_fetch(version: int) -> None:
    broker = FakeBroker()
    assert fetch(broker, version) == {0: (-1, 0), 1: (-1, 0)}
    commit(broker, 9)
    assert fetch(broker, version) == {0: (7, 0), 1: (-1, 0)}


@pytest.mark.parametrize("version", offset_fetch.VERSIONS[1:])
def test_all_offsets_of_a_group_are_fetched_by_asking_for_null(version: int) -> None:
    broker = FakeBroker()
    commit(broker, 9)
    response = broker.send(
        offset_fetch,
        version,
        group_id="counts",
        topics=None,
        groups=[{"group_id": "counts", "topics": None}],
    )
    [topic] = (response.groups[0] if version >= 8 else response).topics
    assert [found.committed_offset for found in topic.partitions] == [7]
    if version >= 10:
        assert topic.topic_id == WORDS_ID


def test_a_topic_id_that_is_not_known_is_answered_for_each_partition() -> None:
    topic = {"topic_id": UUID(int=1), "partition_indexes": [0, 3]}
    response = FakeBroker().send(
        offset_fetch, 10, groups=[{"group_id": "counts", "topics": [topic]}]
    )
    codes = [found.error_code for found in response.groups[0].topics[0].partitions]
    assert codes == [Code.UNKNOWN_TOPIC_ID] * 2


@in_versions(join_group)
def test_join_group(version: int) -> None:
    broker = FakeBroker()
    first = broker.send(join_group, version, **JOIN, member_id="")
    if version >= 4:
        assert first.error_code == Code.MEMBER_ID_REQUIRED
        assert first.member_id.startswith("client-")
        first = broker.send(join_group, version, **JOIN, member_id=first.member_id)
    assert first.error_code == 0
    assert (first.generation_id, first.protocol_name) == (1, "range")
    assert first.leader == first.member_id == first.members[0].member_id
    refused = broker.send(join_group, version, **JOIN, member_id="invented")
    assert refused.error_code == Code.UNKNOWN_MEMBER_ID
    assert refused.protocol_name == (None if version >= 7 else "")
    short = broker.send(join_group, version, **{**JOIN, "session_timeout": 10}, member_id="")
    assert short.error_code == Code.INVALID_SESSION_TIMEOUT


@in_versions(sync_group)
def test_sync_group(version: int) -> None:
    broker = FakeBroker()
    member_id, generation = joined(broker)
    protocol = {"protocol_type": "consumer", "protocol_name": "range"}
    fields = {"group_id": "counts", "member_id": member_id, "assignments": [], **protocol}
    again = broker.send(sync_group, version, **fields, generation_id=generation)
    assert (again.error_code, again.assignment) == (0, b"all")
    wrong = broker.send(sync_group, version, **fields, generation_id=generation + 1)
    assert wrong.error_code == Code.ILLEGAL_GENERATION
    if version >= 5:
        for name, value in (("protocol_type", "connect"), ("protocol_name", None)):
            other = {**fields, name: value}
            refused = broker.send(sync_group, version, **other, generation_id=generation)
            assert refused.error_code == Code.INCONSISTENT_GROUP_PROTOCOL


@in_versions(heartbeat)
def test_heartbeat(version: int) -> None:
    broker = FakeBroker()
    member_id, generation = joined(broker)
    fields = {"group_id": "counts", "generation_id": generation}
    assert broker.send(heartbeat, version, **fields, member_id=member_id).error_code == 0
    unknown = broker.send(heartbeat, version, **fields, member_id="nobody")
    assert unknown.error_code == Code.UNKNOWN_MEMBER_ID


@in_versions(leave_group)
def test_leave_group(version: int) -> None:
    broker = FakeBroker()
    member_id, _ = joined(broker)

    def leave(who: str) -> int:
        response = broker.send(
            leave_group,
            version,
            group_id="counts",
            member_id=who,
            members=[{"member_id": who, "group_instance_id": None}],
        )
        if version < 3 or not response.members:
            return int(response.error_code)
        assert response.error_code == 0
        return int(response.members[0].error_code)

    assert leave("nobody") == Code.UNKNOWN_MEMBER_ID
    assert leave(member_id) == Code.NONE
    assert leave(member_id) == Code.UNKNOWN_MEMBER_ID


@in_versions(describe_groups)
def test_describe_groups(version: int) -> None:
    broker = FakeBroker()
    joined(broker)
    response = broker.send(
        describe_groups,
        version,
        groups=["counts", "none"],
        include_authorized_operations=False,
    )
    counts, none = response.groups
    assert (counts.error_code, counts.group_state) == (0, "Stable")
    assert (counts.protocol_type, counts.protocol_data) == ("consumer", "range")
    [member] = counts.members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"all")
    assert none.group_state == "Dead"
    assert none.error_code == (Code.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@in_versions(list_groups)
def test_list_groups(version: int) -> None:
    broker = FakeBroker()
    joined(broker)

    def found(**filters: list[str]) -> list[str]:
        return [g.group_id for g in broker.send(list_groups, version, **filters).groups]

    assert found() == ["counts"]
    if version >= 4:
        assert found(states_filter=["stable"]) == ["counts"]
        assert found(states_filter=["Empty"]) == []
    if version >= 5:
        assert found(types_filter=["Classic"]) == ["counts"]
        assert found(types_filter=["streams"]) == []


@in_versions(delete_groups)
def test_delete_groups(version: int) -> None:
    broker = FakeBroker()
    commit(broker, 9)
    response = broker.send(delete_groups, version, groups_names=["counts", "none", "none"])
    found = {each.group_id: each.error_code for each in response.results}
    assert found == {"counts": 0, "none": Code.GROUP_ID_NOT_FOUND}
    assert len(response.results) == 2
    assert fetch(broker, 9) == {0: (-1, 0), 1: (-1, 0)}


def delete_offsets(broker: FakeBroker, group_id: str) -> tuple[int, dict[int, int]]:
    """Delete offsets; return the response's top-level code and the code of each partition."""
    topics = [{"name": "words", "partitions": [{"partition_index": i} for i in (0, 9)]}]
    response = broker.send(offset_delete, 0, group_id=group_id, topics=topics)
    codes = {
        found.partition_index: found.error_code
        for topic in response.topics
        for found in topic.partitions
    }
    return response.error_code, codes


def test_offset_delete() -> None:
    broker = FakeBroker()
    assert delete_offsets(broker, "counts") == (Code.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(broker, "") == (Code.INVALID_GROUP_ID, {})
    commit(broker, 9)
    assert delete_offsets(broker, "counts") == (0, {0: 0, 9: Code.UNKNOWN_TOPIC_OR_PARTITION})
    assert fetch(broker, 9) == {0: (-1, 0), 1: (-1, 0)}


def test_what_can_not_be_written_is_not_deleted() -> None:
    broker = FakeBroker()
    commit(broker, 9)
    for log in broker.topics.get("__consumer_offsets").partitions:
        log.fail_after = 0
    assert delete_offsets(broker, "counts") == (Code.NOT_COORDINATOR, {})
    [deleted] = broker.send(delete_groups, 2, groups_names=["counts"]).results
    assert deleted.error_code == Code.NOT_COORDINATOR
    assert fetch(broker, 9)[0] == (7, 0)


@pytest.mark.parametrize("version", offset_fetch.VERSIONS)
def test_a_group_that_lives_elsewhere_by_now_says_so_and_the_others_answer(version: int) -> None:
    broker = FakeBroker()
    commit(broker, 9)
    commit(broker, 9, group_id="others")
    groups = broker.coordinators.groups
    assert groups.partition_of("counts") != groups.partition_of("others")
    groups.resign(groups.partition_of("counts"))
    topics = [{"name": "words", "topic_id": WORDS_ID, "partition_indexes": [0]}]
    asked = [{"group_id": each, "topics": topics} for each in ("counts", "others")]
    response = broker.send(
        offset_fetch, version, group_id="counts", topics=topics, groups=asked, require_stable=False
    )
    if version >= 8:
        refused, found = response.groups
        assert (refused.error_code, refused.topics) == (Code.NOT_COORDINATOR, ())
        assert found.topics[0].partitions[0].committed_offset == 7
    elif version >= 2:
        assert (response.error_code, response.topics) == (Code.NOT_COORDINATOR, ())
    else:
        assert response.topics[0].partitions[0].error_code == Code.NOT_COORDINATOR
