from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.data_directory import DataDirectory, UnusableDataDirectory, uuid_to_base64
from coordinator.log.disk import SystemDisk
from coordinator.log.topics import TopicRegistry
from tests.unit.coordinator.log.logs import host, produced

Open = Callable[[], TopicRegistry]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens the topics of one directory, as a start after kill -9 does."""
    storages: list[DataDirectory] = []
    ids = iter(UUID(int=n) for n in range(1, 1_000))

    def open_topics() -> TopicRegistry:
        while storages:
            storages.pop().close()
        storages.append(DataDirectory(tmp_path, 1, UUID(int=99), SystemDisk()))
        config = BrokerConfig(data_dir=tmp_path)
        topics = TopicRegistry(storages[0], config, host(), lambda: next(ids))
        topics.load_topics()
        return topics

    yield open_topics
    storages.pop().close()


def code_of(call: Callable[[], object]) -> Code:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.code


def test_a_topic_is_there_after_a_kill(opened: Open) -> None:
    made = opened().create_topic("lines", 3, {"retention.ms": "-1"})
    found = opened().get("lines")
    assert found is not None
    assert (found.id, len(found.partitions)) == (made.id, 3)
    assert found.configs == {"retention.ms": "-1"}


def test_records_are_there_after_a_kill(opened: Open) -> None:
    made = opened().create_topic("lines", 2)
    made.partitions[1].append_produced(produced([b"a", b"b"]))
    found = opened().get("lines")
    assert found is not None
    assert [p.end_offset for p in found.partitions] == [0, 2]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "../x"])
def test_a_name_that_no_topic_can_have_is_refused(opened: Open, name: str) -> None:
    assert code_of(lambda: opened().create_topic(name, 1)) == Code.INVALID_TOPIC_EXCEPTION


def test_what_can_not_be_made_is_refused_with_kafkas_code(opened: Open) -> None:
    topics = opened()
    topics.create_topic("a.b", 1)
    assert code_of(lambda: topics.create_topic("a.b", 1)) == Code.TOPIC_ALREADY_EXISTS
    assert code_of(lambda: topics.create_topic("a_b", 1)) == Code.INVALID_TOPIC_EXCEPTION
    assert code_of(lambda: topics.create_topic("c", 0)) == Code.INVALID_PARTITIONS
    wrong = {"no.such.config": "1"}, {"retention.ms": "soon"}, {"cleanup.policy": "burn"}
    for configs in wrong:
        assert code_of(lambda configs=configs: topics.create_topic("c", 1, configs)) == (  # type: ignore[misc]
            Code.INVALID_CONFIG
        )
    assert [topic.name for topic in topics] == ["a.b"]


def test_a_deleted_topic_is_gone_and_its_name_is_free(opened: Open, tmp_path: Path) -> None:
    topics = opened()
    old = topics.create_topic("lines", 2)
    old.partitions[0].append_produced(produced())
    topics.delete_topic(old)
    assert topics.get("lines") is None
    assert topics.by_id(old.id) is None
    assert not list(tmp_path.glob("lines*"))
    new = topics.create_topic("lines", 1)
    assert new.id != old.id
    assert new.partitions[0].end_offset == 0


def test_a_delete_that_was_killed_half_way_is_finished_at_the_next_start(
    opened: Open, tmp_path: Path
) -> None:
    topics = opened()
    topic = topics.create_topic("lines", 2)
    for partition in topic.partitions:
        partition.append_produced(produced())
    deleted = [f"lines-{i}.{uuid_to_base64(topic.id)}-delete" for i in (0, 1)]
    topics._storage.write_topics([], deleted)
    (tmp_path / "lines-0").rename(tmp_path / deleted[0])
    again = opened()
    assert again.get("lines") is None
    assert not list(tmp_path.glob("lines*"))
    assert again.create_topic("lines", 2).partitions[1].end_offset == 0


class Unmovable(SystemDisk):
    """Stands in for a disk on which directories can't be renamed."""

    is_wanted = False

    def rename_path(self, old: Path, new: Path) -> None:
        if self.is_wanted and old.is_dir():
            raise OSError(errno.EIO, "no")
        super().rename_path(old, new)


def test_what_could_not_be_removed_of_a_deleted_topic_is_never_another_topics(
    tmp_path: Path,
) -> None:
    disk = Unmovable()
    storage = DataDirectory(tmp_path, 1, UUID(int=99), disk)
    ids = iter(UUID(int=n) for n in range(1, 100))
    config = BrokerConfig(data_dir=tmp_path)

    def loaded() -> TopicRegistry:
        topics = TopicRegistry(storage, config, host(disk), lambda: next(ids))
        topics.load_topics()
        return topics

    topics = loaded()
    old = topics.create_topic("lines", 1)
    for value in (b"old-1", b"old-2"):
        old.partitions[0].append_produced(produced([value]))
    forgotten: list[str] = []
    topics.when_deleted.append(lambda topic: forgotten.append(topic.name))
    disk.is_wanted = True
    topics.delete_topic(old)
    assert forgotten == ["lines"]
    assert code_of(lambda: topics.create_topic("lines", 1)) == Code.KAFKA_STORAGE_ERROR
    disk.is_wanted = False
    new = topics.create_topic("lines", 1).partitions[0]
    new.append_produced(produced([b"new-1"]))
    found = loaded().find_partition("lines", 0)
    assert found is not None
    assert found.end_offset == 1
    storage.close()


def test_an_altered_configuration_holds_at_once_and_after_a_kill(opened: Open) -> None:
    topics = opened()
    topics.create_topic("lines", 1, {"max.message.bytes": "2000", "retention.ms": "-1"})
    topics.save_and_replace_configs("lines", {"max.message.bytes": "1000"})
    for found in (topics.get("lines"), opened().get("lines")):
        assert found is not None
        assert found.configs == {"max.message.bytes": "1000"}
        assert found.partitions[0].settings.max_message_bytes == 1000


def test_added_partitions_are_there_at_once_and_after_a_kill(opened: Open) -> None:
    topics = opened()
    topics.create_topic("lines", 2).partitions[0].append_produced(produced())
    topics.add_partitions("lines", 4).partitions[3].append_produced(produced())
    for found in (topics.get("lines"), opened().get("lines")):
        assert found is not None
        assert [log.end_offset for log in found.partitions] == [1, 0, 0, 1]
        assert [log.index for log in found.partitions] == [0, 1, 2, 3]


def test_a_change_that_can_not_be_made_is_refused_and_changes_nothing(opened: Open) -> None:
    topics = opened()
    topics.create_topic("lines", 2)
    assert (
        code_of(lambda: topics.save_and_replace_configs("none", {}))
        == Code.UNKNOWN_TOPIC_OR_PARTITION
    )
    assert code_of(lambda: topics.add_partitions("none", 3)) == Code.UNKNOWN_TOPIC_OR_PARTITION
    for count in (1, 2, 10_001):
        assert code_of(lambda n=count: topics.add_partitions("lines", n)) == (  # type: ignore[misc]
            Code.INVALID_PARTITIONS
        )
    for configs in ({"retention.ms": "soon"}, {"compression.type": "gzip"}):
        assert code_of(lambda c=configs: topics.save_and_replace_configs("lines", c)) == (  # type: ignore[misc]
            Code.INVALID_CONFIG
        )
    found = topics.get("lines")
    assert found is not None
    assert (found.configs, len(found.partitions)) == ({}, 2)


def test_another_topics_directory_is_never_read_as_ones_own(opened: Open, tmp_path: Path) -> None:
    topic = opened().create_topic("lines", 1)
    topic.partitions[0].append_produced(produced())
    (tmp_path / "lines-0" / "partition.metadata").write_text(
        f"version: 0\ntopic_id: {uuid_to_base64(UUID(int=1234))}\n"
    )
    with pytest.raises(UnusableDataDirectory, match="another topic's"):
        opened()


def test_two_brokers_never_share_a_directory(opened: Open, tmp_path: Path) -> None:
    opened()
    with pytest.raises(UnusableDataDirectory, match="used by another broker"):
        DataDirectory(tmp_path, 1, UUID(int=5), SystemDisk())


def test_the_cluster_id_stays(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path, 1, UUID(int=5), SystemDisk())
    first.close()
    second = DataDirectory(tmp_path, 1, UUID(int=6), SystemDisk())
    second.close()
    assert second.cluster_id == first.cluster_id == uuid_to_base64(UUID(int=5))


@pytest.mark.parametrize("content", ["", "{", '{"topics": 3}', '{"topics": [{}], "deleted": []}'])
def test_an_unreadable_list_of_topics_is_reported_with_its_path(
    opened: Open, tmp_path: Path, content: str
) -> None:
    opened()
    (tmp_path / "topics.json").write_text(content)
    with pytest.raises(UnusableDataDirectory, match=r"topics\.json can't be read"):
        opened()


def test_topics_without_their_list_are_reported_and_not_written_over(
    opened: Open, tmp_path: Path
) -> None:
    opened().create_topic("lines", 1).partitions[0].append_produced(produced())
    (tmp_path / "topics.json").unlink()
    with pytest.raises(UnusableDataDirectory, match=r"topics\.json is missing, and .*lines-0 is"):
        opened()


def test_an_unwritable_directory_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableDataDirectory, match="choose one that you may write to"):
        DataDirectory(tmp_path / "file", 1, UUID(int=5), SystemDisk())
