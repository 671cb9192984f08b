from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from coordinator.config import BrokerConfig
from coordinator.dynamic_config import ConfigSource, DynamicConfigs, ResourceType
from coordinator.errors import Code, Refused
from coordinator.log.data_directory import DataDirectory, UnusableDataDirectory
from coordinator.log.disk import BrokerDisk, SystemDisk

MAX_BYTES = "message.max.bytes"
BROKER, GROUP = ResourceType.BROKER, ResourceType.GROUP


class FullDisk(SystemDisk):
    """Stands in for a disk that can't replace a file."""

    def replace_file(self, path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")


class Opened:
    """Holds a directory's dynamic configurations and counts how often they changed."""

    def __init__(self, directory: Path, disk: BrokerDisk | None = None, **settings: int) -> None:
        self.changes = 0
        self.storage = DataDirectory(directory, 1, UUID(int=7), disk or SystemDisk())
        config = BrokerConfig(data_dir=directory, **settings)  # type: ignore[arg-type]
        self.dynamic = DynamicConfigs(config, self.storage, self._changed)

    def _changed(self) -> None:
        self.changes += 1


def test_what_is_set_for_this_broker_holds_before_what_is_set_for_all(tmp_path: Path) -> None:
    opened = Opened(tmp_path, message_max_bytes=7)
    dynamic = opened.dynamic
    dynamic.save_and_replace_configs(BROKER, "", {MAX_BYTES: "8"})
    assert dynamic.effective_config().message_max_bytes == 8
    dynamic.save_and_replace_configs(BROKER, "1", {MAX_BYTES: "9"})
    assert dynamic.effective_config().message_max_bytes == 9
    assert dynamic.list_config_synonyms("message_max_bytes") == [
        (MAX_BYTES, "9", ConfigSource.DYNAMIC_BROKER),
        (MAX_BYTES, "8", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (MAX_BYTES, "7", ConfigSource.STATIC_BROKER),
        (MAX_BYTES, "1048588", ConfigSource.DEFAULT),
    ]
    assert opened.changes == 2


def test_settings_with_which_the_broker_could_not_start_are_not_kept(tmp_path: Path) -> None:
    dynamic = Opened(tmp_path).dynamic
    with pytest.raises(Refused, match="must not be above") as refused:
        dynamic.save_and_replace_configs(
            BROKER, "1", {"group.consumer.assignment.interval.ms": "15001"}
        )
    assert refused.value.code is Code.INVALID_REQUEST
    assert (
        dynamic.configs_of_resource(BROKER, "1"),
        dynamic.effective_config().num_partitions,
    ) == ({}, 1)


def test_what_was_set_is_there_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    first = Opened(tmp_path)
    first.dynamic.save_and_replace_configs(GROUP, "g", {"streams.num.standby.replicas": "1"})
    first.dynamic.save_and_replace_configs(BROKER, "1", {MAX_BYTES: "9"})
    first.dynamic.save_and_replace_configs(GROUP, "gone", {"streams.num.standby.replicas": "1"})
    first.dynamic.save_and_replace_configs(GROUP, "gone", {})
    first.storage.close()
    again = Opened(tmp_path).dynamic
    assert again.resource_names(GROUP) == ["g"]
    assert again.configs_of_resource(GROUP, "g") == {"streams.num.standby.replicas": "1"}
    assert again.effective_config().message_max_bytes == 9


def test_what_can_t_be_written_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    Opened(tmp_path).storage.close()
    opened = Opened(tmp_path, FullDisk())
    with pytest.raises(Refused) as refused:
        opened.dynamic.save_and_replace_configs(BROKER, "1", {MAX_BYTES: "9"})
    assert refused.value.code is Code.KAFKA_STORAGE_ERROR
    assert opened.dynamic.effective_config().message_max_bytes == 1_048_588
    assert opened.changes == 0


def test_a_file_that_can_t_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "configs.json").write_text("{")
    with pytest.raises(UnusableDataDirectory, match=r"configs\.json can't be read"):
        Opened(tmp_path)
