from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code
from coordinator.log.disk import SystemDisk
from tests.unit.coordinator.api.client import Client, run

LIST_OFFSETS, METADATA, CREATE, DELETE, DESCRIBE_CONFIGS, DESCRIBE_CLUSTER = 2, 3, 19, 20, 32, 60


def metadata(client: Client, *names: str, version: int = 12, create: bool = False) -> Any:
    return client.ask(
        METADATA,
        version,
        topics=[{"name": name, "topic_id": None} for name in names],
        allow_auto_topic_creation=create,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def test_metadata_makes_a_topic_only_if_the_client_and_the_broker_allow_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path, num_partitions=3)
        assert metadata(client, "t").topics[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION
        assert len(metadata(client, "t", create=True).topics[0].partitions) == 3
        bad = metadata(client, "a b", "u", create=True).topics
        assert [topic.error_code for topic in bad] == [Code.INVALID_TOPIC_EXCEPTION, Code.NONE]
        assert metadata(client, "old", version=3).topics[0].error_code == Code.NONE

    run(scenario())


def test_one_request_for_metadata_makes_a_hundred_topics_and_the_next_the_others(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        names = [f"t{number}" for number in range(150)]
        for made in (100, 150):
            answer = metadata(client, *names, create=True)
            codes = [topic.error_code for topic in answer.topics]
            expected = [Code.NONE] * made + [Code.LEADER_NOT_AVAILABLE] * (150 - made)
            assert codes == expected

    run(scenario())


def test_a_broker_may_forbid_auto_creation(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path, auto_create_topics_enable=False)
        [topic] = metadata(client, "t", create=True).topics
        assert topic.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


def topic(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": (),
        "configs": (),
        **fields,
    }


def test_all_topics_of_a_request_are_made_in_one_write_or_none_of_them_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [topic("a.b"), topic("a_b"), topic("no name"), topic("c")]
    writes: list[Path] = []
    is_full = True
    really_replace = SystemDisk.replace_file

    def replace(self: SystemDisk, path: Path, data: bytes) -> None:
        writes.append(path)
        if is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        really_replace(self, path, data)

    async def scenario() -> None:
        nonlocal is_full
        client = Client(tmp_path)
        monkeypatch.setattr(SystemDisk, "replace_file", replace)
        request = {"topics": asked, "timeout": 1_000, "validate_only": False}
        codes = [one.error_code for one in client.ask(CREATE, 7, **request).topics]
        failed, refused = Code.KAFKA_STORAGE_ERROR, Code.INVALID_TOPIC_EXCEPTION
        assert codes == [failed, refused, refused, failed]
        assert [t.name for t in client.broker.topics if not t.is_internal] == []
        is_full = False
        writes.clear()
        codes = [one.error_code for one in client.ask(CREATE, 7, **request).topics]
        assert codes == [Code.NONE, refused, refused, Code.NONE]
        assert [path.name for path in writes] == ["topics.json"]
        assert [t.name for t in client.broker.topics if not t.is_internal] == ["a.b", "c"]

    run(scenario())
