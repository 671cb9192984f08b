from __future__ import annotations

import errno
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordinator.errors import Code
from coordinator.log.disk import SystemDisk
from tests.unit.coordinator.api.client import Client, batch, run
from tests.unit.coordinator.log.logs import NOW_MS, produced

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


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_this_broker_as_the_leader_of_everything(
    tmp_path: Path, version: int
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        topic_id = client.create("t", 2)
        answer = metadata(client, "t", version=version)
        [topic] = answer.topics
        assert (topic.error_code, topic.name, topic.is_internal if version else False) == (
            Code.NONE,
            "t",
            False,
        )
        assert [(p.partition_index, p.leader_id) for p in topic.partitions] == [(0, 1), (1, 1)]
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", 9092)]
        if version >= 10:
            assert topic.topic_id == topic_id

    run(scenario())


def test_no_list_of_topics_means_all_and_an_empty_one_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        everything = {
            "allow_auto_topic_creation": True,
            "include_topic_authorized_operations": False,
        }
        answer = client.ask(METADATA, 12, topics=None, **everything)
        found = {topic.name: topic.is_internal for topic in answer.topics}
        assert found["t"] is False
        assert found["__consumer_offsets"] is True
        assert client.ask(METADATA, 12, topics=(), **everything).topics == ()
        assert len(client.ask(METADATA, 0, topics=()).topics) == len(answer.topics)

    run(scenario())


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


def test_metadata_by_topic_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        topic_id = client.create("t")
        answer = client.ask(
            METADATA,
            12,
            topics=[{"name": None, "topic_id": i} for i in (topic_id, UUID(int=3))],
            include_topic_authorized_operations=False,
        )
        found = [(topic.name, topic.error_code) for topic in answer.topics]
        assert found == [("t", Code.NONE), (None, Code.UNKNOWN_TOPIC_ID)]

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


def assigned(*brokers: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"partition_index": i, "broker_ids": ids} for i, ids in enumerate(brokers)]


@pytest.mark.parametrize("version", range(2, 8))
def test_create_topics_answers_each_topic_for_itself(tmp_path: Path, version: int) -> None:
    asked = [
        (topic("plain", 3), Code.NONE),
        (topic("default", -1, -1), Code.NONE),
        (topic("placed", -1, -1, assignments=assigned((1,), (1,))), Code.NONE),
        (topic("there"), Code.TOPIC_ALREADY_EXISTS),
        (topic("a b"), Code.INVALID_TOPIC_EXCEPTION),
        (topic("none", 0), Code.INVALID_PARTITIONS),
        (topic("copies", 1, 3), Code.INVALID_REPLICATION_FACTOR),
        (topic("away", -1, -1, assignments=assigned((2,))), Code.INVALID_REPLICA_ASSIGNMENT),
        (topic("both", 1, 1, assignments=assigned((1,))), Code.INVALID_REQUEST),
        (topic("odd", configs=[{"name": "no.such", "value": "1"}]), Code.INVALID_CONFIG),
        (topic("null", configs=[{"name": "retention.ms", "value": None}]), Code.INVALID_CONFIG),
    ]
    twice = [topic("twice"), topic("twice")]

    async def scenario() -> None:
        client = Client(tmp_path, num_partitions=4)
        client.create("there")
        request = {"topics": [*twice, *(one for one, _ in asked)], "validate_only": False}
        answer = client.ask(CREATE, version, timeout=1_000, **request)
        found = [(one.name, one.error_code) for one in answer.topics]
        expected = [(one["name"], code) for one, code in asked]
        assert found == [*expected, ("twice", Code.INVALID_REQUEST)]
        counts = {t.name: len(t.partitions) for t in client.broker.topics if not t.is_internal}
        assert counts == {"plain": 3, "default": 4, "placed": 2, "there": 1}

    run(scenario())


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


def test_validating_makes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        request = {"topics": [topic("t")], "timeout": 1_000, "validate_only": True}
        assert client.ask(CREATE, 7, **request).topics[0].error_code == Code.NONE
        assert client.broker.topics.get("t") is None

    run(scenario())


@pytest.mark.parametrize("version", range(1, 7))
def test_delete_topics_answers_each_topic_for_itself(tmp_path: Path, version: int) -> None:
    names = ("t", "u", "__consumer_offsets")

    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        client.produce("t", batch(b"v"))
        answer = client.ask(
            DELETE,
            version,
            topic_names=names,
            topics=[{"name": name, "topic_id": None} for name in names],
            timeout=1_000,
        )
        assert [one.error_code for one in answer.responses] == [
            Code.NONE,
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.INVALID_TOPIC_EXCEPTION,
        ]
        assert client.broker.topics.get("t") is None
        assert not (tmp_path / "t-0").exists()

    run(scenario())


def test_delete_topics_by_id(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        ids = (client.create("t"), UUID(int=3))
        answer = client.ask(
            DELETE, 6, topics=[{"name": None, "topic_id": i} for i in ids], timeout=1_000
        )
        found = [(one.name, one.error_code) for one in answer.responses]
        assert found == [("t", Code.NONE), (None, Code.UNKNOWN_TOPIC_ID)]

    run(scenario())


@pytest.mark.parametrize("version", range(1, 5))
def test_configurations_come_with_where_they_are_from(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        client = Client(tmp_path, log_segment_bytes=1_000_000)
        client.create("t", retention_ms="-1")
        wanted = ("retention.ms", "segment.bytes", "cleanup.policy")
        answer = client.ask(
            DESCRIBE_CONFIGS,
            version,
            resources=[
                {"resource_type": 2, "resource_name": "t", "configuration_keys": wanted},
                {"resource_type": 2, "resource_name": "u", "configuration_keys": None},
                {"resource_type": 4, "resource_name": "1", "configuration_keys": None},
                {"resource_type": 4, "resource_name": "2", "configuration_keys": None},
                {"resource_type": 8, "resource_name": "2", "configuration_keys": None},
            ],
            include_synonyms=True,
            include_documentation=False,
        )
        assert [result.error_code for result in answer.results] == [
            Code.NONE,
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.NONE,
            Code.INVALID_REQUEST,
            Code.INVALID_REQUEST,
        ]
        found = {
            config.name: (config.value, config.config_source, len(config.synonyms))
            for config in answer.results[0].configs
        }
        assert found == {
            "cleanup.policy": ("delete", 5, 1),
            "retention.ms": ("-1", 1, 1),
            "segment.bytes": ("1000000", 4, 2),
        }
        broker = {config.name: config.value for config in answer.results[2].configs}
        assert broker["log.segment.bytes"] == "1000000"
        assert broker["auto.create.topics.enable"] == "true"

    run(scenario())


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_one_broker(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        answer = client.ask(
            DESCRIBE_CLUSTER,
            version,
            include_cluster_authorized_operations=False,
            include_fenced_brokers=False,
        )
        assert answer.cluster_id == client.broker.services.cluster_id
        assert [broker.broker_id for broker in answer.brokers] == [answer.controller_id] == [1]

    run(scenario())


@pytest.mark.parametrize(
    ("timestamp", "version", "isolation", "expected"),
    [
        (-1, 1, 0, (4, -1)),
        (-1, 11, 0, (4, -1)),
        (-1, 7, 1, (3, -1)),
        (-2, 7, 0, (0, -1)),
        (-3, 7, 0, (1, NOW_MS + 9)),
        (-4, 8, 0, (0, -1)),
        (-5, 9, 0, (-1, -1)),
        (-6, 11, 0, (-1, -1)),
        (NOW_MS + 1, 7, 0, (1, NOW_MS + 9)),
        (NOW_MS + 10, 7, 0, (-1, -1)),
        (-3, 6, 0, Code.UNSUPPORTED_VERSION),
        (-7, 11, 0, Code.UNSUPPORTED_VERSION),
    ],
)
def test_offsets_at_a_time_or_an_end(
    tmp_path: Path, timestamp: int, version: int, isolation: int, expected: Any
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        for later in (0, 9, 5):
            client.produce("t", batch(b"v", timestamp_ms=NOW_MS + later))
        partition = client.partition("t")
        partition.append_produced(produced(producer_id=7, transactional=True, timestamp_ms=NOW_MS))
        answer = client.ask(
            LIST_OFFSETS,
            version,
            replica_id=-1,
            isolation_level=isolation,
            timeout=1_000,
            topics=[{"name": "t", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}],
        )
        [one] = answer.topics[0].partitions
        if isinstance(expected, Code):
            assert one.error_code == expected
        else:
            assert (one.error_code, one.offset, one.timestamp) == (Code.NONE, *expected)

    run(scenario())


def test_offsets_of_an_unknown_partition(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        answer = client.ask(
            LIST_OFFSETS,
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        )
        assert answer.topics[0].partitions[0].error_code == Code.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())
