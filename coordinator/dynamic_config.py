"""Store configurations altered at run time: of brokers and groups, and feature levels.

They are kept in `configs.json` of the data directory, which is written anew and put in place by one
rename, like `topics.json`, which has the configurations of topics. It is a file and not a log,
because it is small, seldom written, and needed as a whole before any log is opened.

A setting of the broker has up to four layers, of which the first holds: altered for this broker,
altered for all brokers (a resource without a name), given when it was started, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator.config import BROKER_SETTINGS, BrokerConfig, WrongSetting
from coordinator.errors import Code, Refused
from coordinator.features import Features
from coordinator.log.configs import TOPIC_CONFIGS
from coordinator.log.data_directory import DataDirectory, UnusableDataDirectory

# Broker settings that may be altered at run time: the defaults of topic settings, and two more.
DYNAMIC_SETTINGS: frozenset[str] = frozenset(
    [config.broker_field for config in TOPIC_CONFIGS.values() if config.broker_field]
    + ["group_consumer_assignment_interval_ms", "producer_id_expiration_ms"]
)
# Kafka has no default for these: they fall back to settings in other units.
_WITHOUT_DEFAULT = frozenset(
    {"log_retention_ms", "log_roll_ms", "log_roll_jitter_ms", "log_flush_interval_ms"}
)


_EPOCH_KEY = "epoch"


class ResourceType(IntEnum):
    """Enumerates the kinds of resources that have a configuration.

    Source: org.apache.kafka.common.config.ConfigResource.
    """

    FEATURES = 0  # our own: finalised feature levels and their epoch
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Enumerates the origins of a setting's value.

    Source: DescribeConfigsResponse.ConfigSource.
    """

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    """Holds one of the layered values of a setting, under the name that it was set with.

    Kafka's counterpart is ConfigEntry.ConfigSynonym.
    """

    name: str
    value: str
    source: ConfigSource


class DynamicConfigs:
    """Stores the configurations that were altered at run time; topics keep their own."""

    def __init__(
        self, static_config: BrokerConfig, storage: DataDirectory, on_change: Callable[[], None]
    ) -> None:
        """Read the altered configurations; `static_config` is what the broker was started with.

        `on_change` is called after each change. Raises: UnusableDataDirectory.
        """
        self._static_config = static_config
        self._storage = storage
        self._on_change = on_change
        self._resources: dict[tuple[int, str], dict[str, str]] = {
            (kind, name): configs for kind, name, configs in storage.read_configs()
        }

    def configs_of_resource(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """Return the settings that were altered for a resource; empty if none was."""
        return self._resources.get((kind, name), {})

    def resource_names(self, kind: ResourceType) -> list[str]:
        """Return the sorted names of the resources of a type for which something is set."""
        return sorted(name for resource_type, name in self._resources if resource_type == kind)

    def save_and_replace_configs(
        self, kind: ResourceType, name: str, configs: Mapping[str, str]
    ) -> None:
        """Replace the configuration of a resource, on disk and in force when this returns.

        Raises: Refused, KAFKA_STORAGE_ERROR; INVALID_REQUEST for broker settings that contradict
        each other, with which the broker could not start. The configuration stays as it was then.
        """
        resources = {key: value for key, value in self._resources.items() if key != (kind, name)}
        if configs:
            resources[(kind, name)] = dict(configs)
        try:
            self._merge_broker_configs(resources)
        except WrongSetting as wrong:
            raise Refused(Code.INVALID_REQUEST, str(wrong)) from wrong
        try:
            self._storage.write_configs((*key, value) for key, value in resources.items())
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error
        self._resources = resources
        self._on_change()

    def effective_config(self) -> BrokerConfig:
        """Return the broker's settings with the altered ones applied.

        Raises: WrongSetting for an altered one that this version of the broker doesn't have.
        """
        return self._merge_broker_configs(self._resources)

    def _merge_broker_configs(
        self, resources: Mapping[tuple[int, str], Mapping[str, str]]
    ) -> BrokerConfig:
        for_all = resources.get((ResourceType.BROKER, ""), {})
        for_this = resources.get((ResourceType.BROKER, str(self._static_config.node_id)), {})
        return self._static_config.with_settings({**for_all, **for_this})

    def list_config_synonyms(self, field: str) -> list[ConfigSynonym]:
        """Return the layered values of a broker setting, the effective one first."""
        name = field.replace("_", ".")
        default = BROKER_SETTINGS[field].default
        static = self._static_config.format_setting(field)
        synonyms = []
        if name in self._this_broker_configs:
            synonyms.append(
                ConfigSynonym(name, self._this_broker_configs[name], ConfigSource.DYNAMIC_BROKER)
            )
        if name in self._all_brokers_configs:
            synonyms.append(
                ConfigSynonym(
                    name, self._all_brokers_configs[name], ConfigSource.DYNAMIC_DEFAULT_BROKER
                )
            )
        if static != default:
            synonyms.append(ConfigSynonym(name, static, ConfigSource.STATIC_BROKER))
        if field not in _WITHOUT_DEFAULT:
            synonyms.append(ConfigSynonym(name, default, ConfigSource.DEFAULT))
        return synonyms

    def restore_features(self, features: Features) -> None:
        """Set the feature levels and their epoch to those on disk.

        Raises: UnusableDataDirectory for invalid levels.
        """
        kept = dict(self.configs_of_resource(ResourceType.FEATURES, ""))
        try:
            epoch = int(kept.pop(_EPOCH_KEY, "0"))
            for name, level in kept.items():
                features.set_level(name, int(level))
        except (ValueError, KeyError) as error:
            raise UnusableDataDirectory(f"configs.json: features {kept}: {error!r}") from error
        features.epoch = max(epoch, features.epoch)

    def finalise_features(self, features: Features, levels: Mapping[str, int]) -> None:
        """Finalise feature levels, on disk and in force when this returns.

        Raises: ValueError for a level that isn't supported, Refused(KAFKA_STORAGE_ERROR); the
        levels on disk stay as they were in the second case.
        """
        kept = {
            **self.configs_of_resource(ResourceType.FEATURES, ""),
            _EPOCH_KEY: str(features.epoch + 1),
        }
        self.save_and_replace_configs(
            ResourceType.FEATURES, "", kept | {name: str(n) for name, n in levels.items()}
        )
        for name, level in levels.items():
            features.set_level(name, level)
        features.epoch = int(kept[_EPOCH_KEY])

    @property
    def _this_broker_configs(self) -> Mapping[str, str]:
        return self.configs_of_resource(ResourceType.BROKER, str(self._static_config.node_id))

    @property
    def _all_brokers_configs(self) -> Mapping[str, str]:
        return self.configs_of_resource(ResourceType.BROKER, "")
