"""Test what the APIs of groups and offsets answer when their shard fails or is elsewhere."""

from __future__ import annotations

import pytest

from coordinator.api import (
    delete_groups,
    offset_delete,
    offset_fetch,
)
from coordinator.errors import Code
from tests.unit.coordinator.api.apis import (
    WORDS_ID,
    FakeBroker,
    commit,
    fetch,
)


def test_what_can_not_be_written_is_not_deleted() -> None:
    broker = FakeBroker()
    commit(broker, 9)
    for log in broker.topics.get("__consumer_offsets").partitions:
        log.fail_after = 0
    topics = [{"name": "words", "partitions": [{"partition_index": 0}]}]
    response = broker.send(offset_delete, 0, group_id="counts", topics=topics)
    assert (response.error_code, response.topics) == (Code.NOT_COORDINATOR, ())
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
    groups.resign_shard(groups.partition_of("counts"))
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
