"""Define the configuration of a topic: Kafka's names, defaults and limits.

A topic keeps only what was set for it. `api/config_description` lays that over the broker's
settings and Kafka's defaults; `build_log_settings` selects the part of it that the log needs. Names
that Kafka has but that this broker doesn't act on are accepted, kept and described, so that a topic
made by a client for real Kafka can be made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.config import BROKER_SETTINGS, BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.settings import LogSettings
from coordinator.settings import INT32_MAX, INT64_MAX, ConfigType, Setting, validate_value


@dataclass(frozen=True, slots=True)
class TopicConfig(Setting):
    """Describes one topic configuration and names the broker setting that is its default.

    `is_internal`: it is for tests, and described only for a topic that has it.
    """

    from_broker: str | None = None
    is_internal: bool = False

    @property
    def broker_field(self) -> str | None:
        """Return the field of BrokerConfig behind this configuration; None if there is none."""
        field = (self.from_broker or "").replace(".", "_")
        return field if field in BROKER_SETTINGS else None


def _create_config_like_broker_setting(broker_setting: str) -> TopicConfig:
    """Make a topic configuration with the type and limits of the broker setting behind it."""
    like = BROKER_SETTINGS[broker_setting.replace(".", "_")]
    return TopicConfig(
        like.kind, like.default, like.low, like.high, like.choices, from_broker=broker_setting
    )


_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_FALSE = TopicConfig(ConfigType.BOOLEAN, "false")
_REPLICAS = TopicConfig(ConfigType.LIST, "", is_replica_list=True)
_TIERED = TopicConfig(ConfigType.LONG, "-2", -2)
_SEGMENT_BYTES_MIN = 1 << 20  # from Kafka 4.0 on (KIP-1030)

TOPIC_CONFIGS: Mapping[str, TopicConfig] = {
    "cleanup.policy": _create_config_like_broker_setting("log.cleanup.policy"),
    "compression.gzip.level": TopicConfig(
        ConfigType.INT, "-1", 1, 9, extra_value=-1, from_broker="compression.gzip.level"
    ),
    "compression.lz4.level": TopicConfig(
        ConfigType.INT, "9", 1, 17, from_broker="compression.lz4.level"
    ),
    "compression.type": TopicConfig(
        ConfigType.STRING, "producer", choices=_COMPRESSIONS, from_broker="compression.type"
    ),
    "compression.zstd.level": TopicConfig(
        ConfigType.INT, "3", -131_072, 22, from_broker="compression.zstd.level"
    ),
    "delete.retention.ms": _create_config_like_broker_setting("log.cleaner.delete.retention.ms"),
    "errors.deadletterqueue.group.enable": _FALSE,
    "file.delete.delay.ms": _create_config_like_broker_setting("log.segment.delete.delay.ms"),
    "flush.messages": _create_config_like_broker_setting("log.flush.interval.messages"),
    "flush.ms": _create_config_like_broker_setting("log.flush.interval.ms"),
    "follower.replication.throttled.replicas": _REPLICAS,
    "index.interval.bytes": _create_config_like_broker_setting("log.index.interval.bytes"),
    # A smaller segment than `segment.bytes` may have, in place of it: Kafka's way for tests.
    "internal.segment.bytes": TopicConfig(ConfigType.INT, "", 14, INT32_MAX, is_internal=True),
    "leader.replication.throttled.replicas": _REPLICAS,
    "local.retention.bytes": replace(_TIERED, from_broker="log.local.retention.bytes"),
    "local.retention.ms": replace(_TIERED, from_broker="log.local.retention.ms"),
    "max.compaction.lag.ms": _create_config_like_broker_setting(
        "log.cleaner.max.compaction.lag.ms"
    ),
    "max.decompressed.message.bytes": TopicConfig(
        ConfigType.INT,
        "2147483639",
        1,
        INT32_MAX - 8,
        from_broker="max.decompressed.message.bytes",
    ),
    "max.message.bytes": _create_config_like_broker_setting("message.max.bytes"),
    "message.timestamp.after.max.ms": _create_config_like_broker_setting(
        "log.message.timestamp.after.max.ms"
    ),
    "message.timestamp.before.max.ms": _create_config_like_broker_setting(
        "log.message.timestamp.before.max.ms"
    ),
    "message.timestamp.type": _create_config_like_broker_setting("log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": _create_config_like_broker_setting(
        "log.cleaner.min.cleanable.ratio"
    ),
    "min.compaction.lag.ms": _create_config_like_broker_setting(
        "log.cleaner.min.compaction.lag.ms"
    ),
    "min.insync.replicas": TopicConfig(
        ConfigType.INT, "1", 1, INT32_MAX, from_broker="min.insync.replicas"
    ),
    "preallocate": replace(_FALSE, from_broker="log.preallocate"),
    "remote.copy.lag.bytes": TopicConfig(
        ConfigType.LONG, "-1", -1, from_broker="log.remote.copy.lag.bytes"
    ),
    "remote.copy.lag.ms": TopicConfig(
        ConfigType.LONG, "0", -1, from_broker="log.remote.copy.lag.ms"
    ),
    "remote.log.copy.disable": _FALSE,
    "remote.log.delete.on.disable": _FALSE,
    "remote.storage.enable": _FALSE,
    "retention.bytes": _create_config_like_broker_setting("log.retention.bytes"),
    "retention.ms": _create_config_like_broker_setting("log.retention.ms"),
    "segment.bytes": replace(
        _create_config_like_broker_setting("log.segment.bytes"), low=_SEGMENT_BYTES_MIN
    ),
    "segment.index.bytes": _create_config_like_broker_setting("log.index.size.max.bytes"),
    "segment.jitter.ms": _create_config_like_broker_setting("log.roll.jitter.ms"),
    "segment.ms": _create_config_like_broker_setting("log.roll.ms"),
    "unclean.leader.election.enable": replace(_FALSE, from_broker="unclean.leader.election.enable"),
}


def find_topic_config_default(name: str, broker_config: BrokerConfig) -> str:
    """Return the value that a topic has if none was set for it."""
    config = TOPIC_CONFIGS[name]
    return (
        broker_config.format_setting(config.broker_field) if config.broker_field else config.default
    )


def validate_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Validate topic configurations and return them as they are to be kept.

    Raises: Refused (INVALID_CONFIG), naming the wrong one.
    """
    found = {}
    for name, value in configs.items():
        config = TOPIC_CONFIGS.get(name)
        if config is None:
            raise Refused(Code.INVALID_CONFIG, f"Unknown topic config name: {name}")
        if value is None:
            raise Refused(
                Code.INVALID_CONFIG, f"Null value not supported for topic configs: {name}"
            )
        found[name] = validate_value(name, value, config)
    _check_config_combination(found)
    return found


def _check_config_combination(configs: Mapping[str, str]) -> None:
    """Raise Refused (INVALID_CONFIG) if configurations are unsupported or contradict each other."""
    compression = configs.get("compression.type", "producer")
    if compression != "producer":
        raise Refused(
            Code.INVALID_CONFIG,
            f"compression.type={compression}: this broker stores batches as producers send "
            "them; leave it at producer, and set compression.type in the producer",
        )
    if configs.get("remote.storage.enable", "false").lower() == "true":
        raise Refused(
            Code.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    low = configs.get("min.compaction.lag.ms", "0")
    high = configs.get("max.compaction.lag.ms", str(INT64_MAX))
    if int(low) > int(high):
        raise Refused(
            Code.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms "
            f"({low}) > max.compaction.lag.ms ({high})",
        )


def build_log_settings(configs: Mapping[str, str], broker_config: BrokerConfig) -> LogSettings:
    """Build the settings of a topic's logs from its configuration and the broker's."""

    def config_value(name: str) -> str:
        return configs.get(name, find_topic_config_default(name, broker_config))

    policy = {each.strip() for each in config_value("cleanup.policy").split(",")}
    segment_ms = int(config_value("segment.ms"))
    if "compact" in policy:  # the active segment is never cleaned, so it has to roll in time
        segment_ms = min(segment_ms, int(config_value("max.compaction.lag.ms")))
    return LogSettings(
        segment_bytes=int(config_value("internal.segment.bytes") or config_value("segment.bytes")),
        segment_ms=segment_ms,
        segment_index_bytes=int(config_value("segment.index.bytes")),
        is_deleted="delete" in policy,
        is_compacted="compact" in policy,
        min_cleanable_dirty_ratio=float(config_value("min.cleanable.dirty.ratio")),
        min_compaction_lag_ms=int(config_value("min.compaction.lag.ms")),
        max_compaction_lag_ms=int(config_value("max.compaction.lag.ms")),
        delete_retention_ms=int(config_value("delete.retention.ms")),
        retention_ms=int(config_value("retention.ms")),
        retention_bytes=int(config_value("retention.bytes")),
        file_delete_delay_ms=int(config_value("file.delete.delay.ms")),
        flush_messages=int(config_value("flush.messages")),
        flush_ms=int(config_value("flush.ms")),
        index_interval_bytes=int(config_value("index.interval.bytes")),
        max_message_bytes=int(config_value("max.message.bytes")),
        log_append_time=config_value("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=int(config_value("message.timestamp.before.max.ms")),
        timestamp_after_max_ms=int(config_value("message.timestamp.after.max.ms")),
    )
