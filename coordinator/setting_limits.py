"""Define which values the broker's settings may have, by the names of `BrokerConfig`'s fields."""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.settings import INT32_MAX, INT64_MAX, ConfigType

# The least and the largest value of each setting that is a number.
RANGES: tuple[tuple[str, float, float], ...] = (
    ("port", 0, 65_535),
    ("node_id", 0, INT32_MAX),
    ("num_partitions", 1, INT32_MAX),
    ("default_replication_factor", 1, 1),
    ("message_max_bytes", 0, INT32_MAX),
    ("log_cleaner_backoff_ms", 0, INT64_MAX),
    ("log_cleaner_dedupe_buffer_size", 0, INT64_MAX),
    ("log_cleaner_delete_retention_ms", 0, INT64_MAX),
    ("log_cleaner_max_compaction_lag_ms", 1, INT64_MAX),
    ("log_cleaner_min_cleanable_ratio", 0, 1),
    ("log_cleaner_min_compaction_lag_ms", 0, INT64_MAX),
    ("log_flush_interval_messages", 1, INT64_MAX),
    ("log_flush_interval_ms", 0, INT64_MAX),
    ("log_index_interval_bytes", 0, INT32_MAX),
    ("log_index_size_max_bytes", 4, INT32_MAX),
    ("log_message_timestamp_after_max_ms", 0, INT64_MAX),
    ("log_message_timestamp_before_max_ms", 0, INT64_MAX),
    ("log_flush_offset_checkpoint_interval_ms", 1, INT64_MAX),
    ("log_retention_check_interval_ms", 1, INT64_MAX),
    ("log_retention_bytes", -INT64_MAX - 1, INT64_MAX),
    ("log_retention_ms", -1, INT64_MAX),
    ("log_roll_jitter_ms", 0, INT64_MAX),
    ("log_roll_ms", 1, INT64_MAX),
    ("log_segment_bytes", 14, INT32_MAX),
    ("log_segment_delete_delay_ms", 0, INT64_MAX),
    ("fetch_max_bytes", 1_024, INT32_MAX),
    ("max_incremental_fetch_session_cache_slots", 0, INT32_MAX),
    ("socket_request_max_bytes", 1, INT32_MAX),
    ("queued_max_requests", 1, INT32_MAX),
    ("queued_max_request_bytes", -1, INT64_MAX),
    ("connections_max_idle_ms", -1, INT64_MAX),
    ("max_connections", 0, INT32_MAX),
    ("max_connections_per_ip", 0, INT32_MAX),
    ("producer_id_expiration_ms", 1, INT32_MAX),
    ("producer_id_expiration_check_interval_ms", 1, INT32_MAX),
    ("offsets_topic_num_partitions", 1, 10_000),
    ("offset_metadata_max_bytes", 0, INT32_MAX),
    ("offsets_retention_check_interval_ms", 1, INT64_MAX),
    ("offsets_retention_minutes", 1, INT32_MAX),
    ("group_initial_rebalance_delay_ms", 0, INT32_MAX),
    ("group_min_session_timeout_ms", 1, INT32_MAX),
    ("group_max_session_timeout_ms", 1, INT32_MAX),
    ("group_max_size", 1, INT32_MAX),
    ("group_consumer_assignment_interval_ms", 0, INT32_MAX),
    ("group_consumer_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_consumer_max_assignment_interval_ms", 0, INT32_MAX),
    ("group_consumer_max_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_consumer_max_session_timeout_ms", 1, INT32_MAX),
    ("group_consumer_max_size", 1, INT32_MAX),
    ("group_consumer_min_assignment_interval_ms", 0, INT32_MAX),
    ("group_consumer_min_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_consumer_min_session_timeout_ms", 1, INT32_MAX),
    ("group_consumer_regex_refresh_interval_ms", 10_000, INT32_MAX),
    ("group_consumer_session_timeout_ms", 1, INT32_MAX),
    ("group_streams_assignment_interval_ms", 0, INT32_MAX),
    ("group_streams_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_streams_initial_rebalance_delay_ms", 0, INT32_MAX),
    ("group_streams_max_assignment_interval_ms", 0, INT32_MAX),
    ("group_streams_max_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_streams_max_session_timeout_ms", 1, INT32_MAX),
    ("group_streams_max_size", 1, INT32_MAX),
    ("group_streams_max_standby_replicas", 0, INT32_MAX),
    ("group_streams_min_assignment_interval_ms", 0, INT32_MAX),
    ("group_streams_min_heartbeat_interval_ms", 1, INT32_MAX),
    ("group_streams_min_session_timeout_ms", 1, INT32_MAX),
    ("group_streams_num_standby_replicas", 0, INT32_MAX),
    ("group_streams_session_timeout_ms", 1, INT32_MAX),
    ("group_version", 0, 1),
    ("streams_version", 0, 1),
    ("metrics_port", -1, 65_535),
    ("transaction_version", 0, 2),
    ("transaction_state_log_num_partitions", 1, 10_000),
    ("transaction_max_timeout_ms", 1, INT32_MAX),
    ("transaction_abort_timed_out_transaction_cleanup_interval_ms", 1, INT32_MAX),
    ("transactional_id_expiration_ms", 1, INT32_MAX),
    ("transaction_remove_expired_transaction_cleanup_interval_ms", 1, INT32_MAX),
)

# Pairs of settings whose first must not be above the second.
ORDERED_PAIRS: tuple[tuple[str, str], ...] = (
    ("group_min_session_timeout_ms", "group_max_session_timeout_ms"),
    *(
        pair
        for kind in ("consumer", "streams")
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms")
        for pair in (
            (f"group_{kind}_min_{name}", f"group_{kind}_{name}"),
            (f"group_{kind}_{name}", f"group_{kind}_max_{name}"),
        )
    ),
    ("group_streams_num_standby_replicas", "group_streams_max_standby_replicas"),
)

# Settings whose value is one of a few words, or a list of them.
ALLOWED_WORDS: Mapping[str, tuple[ConfigType, tuple[str, ...]]] = {
    "group_consumer_assignors": (ConfigType.LIST, ("uniform", "range")),
    "group_coordinator_rebalance_protocols": (
        ConfigType.LIST,
        ("classic", "consumer", "streams", "share"),
    ),
    "group_consumer_migration_policy": (
        ConfigType.STRING,
        ("bidirectional", "disabled", "downgrade", "upgrade"),
    ),
    "log_cleanup_policy": (ConfigType.LIST, ("compact", "delete")),
    "log_message_timestamp_type": (ConfigType.STRING, ("CreateTime", "LogAppendTime")),
}
