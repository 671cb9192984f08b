"""The configuration of a topic: Kafka's names, defaults and limits.

A topic keeps only what was set for it. `describe` lays that over the broker's settings and Kafka's
defaults; `settings_of` is what the log takes from it. Names that Kafka has but that this broker
doesn't act on (retention, compaction, compression) are accepted, kept and described, so that a
topic made by a client for real Kafka can be made here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.partition import LogSettings

_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class Kind(IntEnum):
    """The type of a configuration, by DescribeConfigs' number."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One configuration: its default, the broker setting behind that if there is one, limits."""

    kind: Kind
    default: str
    low: float = 0
    high: float = _INT64_MAX
    choices: tuple[str, ...] = ()
    from_broker: str | None = None


_LONG, _INT, _STRING, _BOOLEAN, _LIST, _DOUBLE = (
    Kind.LONG,
    Kind.INT,
    Kind.STRING,
    Kind.BOOLEAN,
    Kind.LIST,
    Kind.DOUBLE,
)

TOPIC_CONFIGS: Mapping[str, TopicConfig] = {
    "cleanup.policy": TopicConfig(_LIST, "delete", choices=("delete", "compact")),
    "compression.gzip.level": TopicConfig(_INT, "-1", -1, 9),
    "compression.lz4.level": TopicConfig(_INT, "9", 1, 17),
    "compression.type": TopicConfig(
        _STRING,
        "producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "compression.zstd.level": TopicConfig(_INT, "3", -131_072, 22),
    "delete.retention.ms": TopicConfig(_LONG, "86400000"),
    "file.delete.delay.ms": TopicConfig(_LONG, "60000"),
    "flush.messages": TopicConfig(_LONG, str(_INT64_MAX), 1),
    "flush.ms": TopicConfig(_LONG, str(_INT64_MAX)),
    "follower.replication.throttled.replicas": TopicConfig(_LIST, ""),
    "index.interval.bytes": TopicConfig(
        _INT, "4096", 0, _INT32_MAX, from_broker="log_index_interval_bytes"
    ),
    "leader.replication.throttled.replicas": TopicConfig(_LIST, ""),
    "local.retention.bytes": TopicConfig(_LONG, "-2", -2),
    "local.retention.ms": TopicConfig(_LONG, "-2", -2),
    "max.compaction.lag.ms": TopicConfig(_LONG, str(_INT64_MAX), 1),
    "max.message.bytes": TopicConfig(
        _INT, "1048588", 0, _INT32_MAX, from_broker="message_max_bytes"
    ),
    "message.timestamp.after.max.ms": TopicConfig(
        _LONG, "3600000", from_broker="log_message_timestamp_after_max_ms"
    ),
    "message.timestamp.before.max.ms": TopicConfig(_LONG, str(_INT64_MAX)),
    "message.timestamp.type": TopicConfig(
        _STRING,
        "CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        from_broker="log_message_timestamp_type",
    ),
    "min.cleanable.dirty.ratio": TopicConfig(_DOUBLE, "0.5", 0, 1),
    "min.compaction.lag.ms": TopicConfig(_LONG, "0"),
    "min.insync.replicas": TopicConfig(_INT, "1", 1, _INT32_MAX),
    "preallocate": TopicConfig(_BOOLEAN, "false"),
    "remote.log.copy.disable": TopicConfig(_BOOLEAN, "false"),
    "remote.log.delete.on.disable": TopicConfig(_BOOLEAN, "false"),
    "remote.storage.enable": TopicConfig(_BOOLEAN, "false"),
    "retention.bytes": TopicConfig(_LONG, "-1", -1),
    "retention.ms": TopicConfig(_LONG, "604800000", -1, from_broker="log_retention_ms"),
    "segment.bytes": TopicConfig(
        _INT, "1073741824", 14, _INT32_MAX, from_broker="log_segment_bytes"
    ),
    "segment.index.bytes": TopicConfig(_INT, "10485760", 4, _INT32_MAX),
    "segment.jitter.ms": TopicConfig(_LONG, "0"),
    "segment.ms": TopicConfig(_LONG, "604800000", 1),
    "unclean.leader.election.enable": TopicConfig(_BOOLEAN, "false"),
}


def default_of(name: str, broker: BrokerConfig) -> str:
    """What a topic has if nothing was set for it."""
    config = TOPIC_CONFIGS[name]
    return str(getattr(broker, config.from_broker)) if config.from_broker else config.default


def is_set_by_broker(name: str, broker: BrokerConfig) -> bool:
    """Whether the broker's settings give topics something else than Kafka's default."""
    return default_of(name, broker) != TOPIC_CONFIGS[name].default


def check_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The same, checked. Refused(INVALID_CONFIG) names what is wrong."""
    checked = {}
    for name, value in configs.items():
        config = TOPIC_CONFIGS.get(name)
        if config is None:
            raise Refused(Code.INVALID_CONFIG, f"Unknown topic config name: {name}")
        if value is None:
            raise Refused(Code.INVALID_CONFIG, f"Null value not supported for {name}")
        if not _is_valid(config, value.strip()):
            raise Refused(Code.INVALID_CONFIG, f"Invalid value {value} for configuration {name}")
        if name == "compression.type" and value.strip() != "producer":
            raise Refused(
                Code.INVALID_CONFIG,
                f"compression.type={value.strip()}: this broker stores batches as producers send "
                "them; leave it at producer, and set compression.type in the producer",
            )
        checked[name] = value.strip()
    return checked


def _is_valid(config: TopicConfig, value: str) -> bool:
    match config.kind:
        case Kind.BOOLEAN:
            return value.lower() in ("true", "false")
        case Kind.INT | Kind.LONG:
            return _is_within(int, value, config)
        case Kind.DOUBLE:
            return _is_within(float, value, config)
        case Kind.LIST:
            items = [item.strip() for item in value.split(",") if item.strip()]
            return not config.choices or all(item in config.choices for item in items)
        case Kind.STRING:
            return not config.choices or value in config.choices


def _is_within(number: Callable[[str], float], value: str, config: TopicConfig) -> bool:
    try:
        return config.low <= number(value) <= config.high
    except ValueError:
        return False


def settings_of(configs: Mapping[str, str], broker: BrokerConfig) -> LogSettings:
    """What a log needs to know of its topic's configuration."""

    def value(name: str) -> str:
        return configs.get(name) or default_of(name, broker)

    return LogSettings(
        segment_bytes=int(value("segment.bytes")),
        index_interval_bytes=int(value("index.interval.bytes")),
        max_message_bytes=int(value("max.message.bytes")),
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_after_max_ms=int(value("message.timestamp.after.max.ms")),
    )
