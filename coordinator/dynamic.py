"""What is altered while the broker runs: its settings, those of groups, the levels of features.

Kept in `configs.json` of the data directory, which is written anew and put in place by one rename,
like `topics.json`, where the configurations of topics stand. A file and not a log, because it is
small, seldom written, and wanted whole before any log is opened.

A setting of the broker has up to four layers, of which the first holds: altered for this broker,
altered for all brokers (a resource without a name), given when it was started, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator.config import SETTINGS, BrokerConfig, WrongSetting
from coordinator.errors import Code, Refused
from coordinator.features import Features
from coordinator.log.configs import TOPIC_CONFIGS
from coordinator.log.storage import Storage, UnusableDataDirectory

# What may be altered while the broker runs: what stands behind a topic's settings, and two more.
DYNAMIC: frozenset[str] = frozenset(
    [config.broker_field for config in TOPIC_CONFIGS.values() if config.broker_field]
    + ["group_consumer_assignment_interval_ms", "producer_id_expiration_ms"]
)
# Kafka has no default of these itself: other settings stand behind them.
_WITHOUT_DEFAULT = frozenset(
    {"log_retention_ms", "log_roll_ms", "log_roll_jitter_ms", "log_flush_interval_ms"}
)


_EPOCH = "epoch"


class ResourceType(IntEnum):
    """What has a configuration. Source: org.apache.kafka.common.config.ConfigResource."""

    FEATURES = 0  # none of Kafka's: the levels that were finalised, and how often they changed
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Where a value is from. Source: DescribeConfigsResponse.ConfigSource."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Layer(NamedTuple):
    """One of the values that a setting has, by the name that it was set with."""

    name: str
    value: str
    source: Source


class DynamicConfigs:
    """The altered configurations of one data directory; topics' are with the topics."""

    def __init__(
        self, static: BrokerConfig, storage: Storage, when_changed: Callable[[], None]
    ) -> None:
        """`static` is what the broker was started with. UnusableDataDirectory."""
        self._static = static
        self._storage = storage
        self._when_changed = when_changed
        self._resources: dict[tuple[int, str], dict[str, str]] = {
            (kind, name): configs for kind, name, configs in storage.read_configs()
        }

    def of(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """What was set for a resource; nothing for one that isn't known."""
        return self._resources.get((kind, name), {})

    def names(self, kind: ResourceType) -> list[str]:
        """The resources of a type for which something is set."""
        return sorted(name for found, name in self._resources if found == kind)

    def put(self, kind: ResourceType, name: str, configs: Mapping[str, str]) -> None:
        """Give a resource this configuration in place of the one that it has; on disk, and in
        force, when this returns. Refused(KAFKA_STORAGE_ERROR) leaves it as it was, and so does
        INVALID_REQUEST for settings of the broker that can't hold together: it could not start."""
        resources = {key: value for key, value in self._resources.items() if key != (kind, name)}
        if configs:
            resources[(kind, name)] = dict(configs)
        try:
            self._effective(resources)
        except WrongSetting as wrong:
            raise Refused(Code.INVALID_REQUEST, str(wrong)) from wrong
        try:
            self._storage.write_configs((*key, value) for key, value in resources.items())
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error
        self._resources = resources
        self._when_changed()

    def effective(self) -> BrokerConfig:
        """The settings that hold. WrongSetting for one that this broker doesn't have."""
        return self._effective(self._resources)

    def _effective(self, resources: Mapping[tuple[int, str], Mapping[str, str]]) -> BrokerConfig:
        for_all = resources.get((ResourceType.BROKER, ""), {})
        for_this = resources.get((ResourceType.BROKER, str(self._static.node_id)), {})
        return self._static.with_settings({**for_all, **for_this})

    def layers(self, field: str) -> list[Layer]:
        """The values of a broker's setting, the one that holds first."""
        name = field.replace("_", ".")
        default = SETTINGS[field].default
        static = self._static.text_of(field)
        layers = []
        if name in self._for_this:
            layers.append(Layer(name, self._for_this[name], Source.DYNAMIC_BROKER))
        if name in self._for_all:
            layers.append(Layer(name, self._for_all[name], Source.DYNAMIC_DEFAULT_BROKER))
        if static != default:
            layers.append(Layer(name, static, Source.STATIC_BROKER))
        if field not in _WITHOUT_DEFAULT:
            layers.append(Layer(name, default, Source.DEFAULT))
        return layers

    def restore_features(self, features: Features) -> None:
        """Finalise what was finalised before. UnusableDataDirectory."""
        kept = dict(self.of(ResourceType.FEATURES, ""))
        try:
            epoch = int(kept.pop(_EPOCH, "0"))
            for name, level in kept.items():
                features.set(name, int(level))
        except (ValueError, KeyError) as error:
            raise UnusableDataDirectory(f"configs.json: features {kept}: {error!r}") from error
        features.epoch = max(epoch, features.epoch)

    def put_features(self, features: Features, levels: Mapping[str, int]) -> None:
        """Finalise these levels; on disk and in force when this returns. ValueError for one that
        isn't supported, Refused(KAFKA_STORAGE_ERROR), leave them as they were."""
        kept = {**self.of(ResourceType.FEATURES, ""), _EPOCH: str(features.epoch + 1)}
        self.put(ResourceType.FEATURES, "", kept | {name: str(n) for name, n in levels.items()})
        for name, level in levels.items():
            features.set(name, level)
        features.epoch = int(kept[_EPOCH])

    @property
    def _for_this(self) -> Mapping[str, str]:
        return self.of(ResourceType.BROKER, str(self._static.node_id))

    @property
    def _for_all(self) -> Mapping[str, str]:
        return self.of(ResourceType.BROKER, "")
