"""Declare the settings as keyword arguments of `App`, so that an editor completes them.

`StreamsConfig` describes each, with its default and its bounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from streams.connection.registry_settings import SchemaRegistrySettings
from streams.connection.settings import ConnectionSettings
from streams.settings.assignment_settings import AssignmentKeywords
from streams.settings.choices import (
    GroupProtocol,
    LogFormat,
    LogLevel,
    ProcessingGuarantee,
    RecordingLevelName,
)
from streams.settings.client_options import ClientKeywords
from streams.settings.exception_handlers import ExceptionHandler
from streams.settings.query_settings import QueryKeywords
from streams.settings.source_settings import SourceKeywords
from streams.settings.topology_settings import TopologyKeywords
from streams.settings.uncaught_exceptions import UncaughtExceptionHandler, UncaughtResponseName


class StreamsSettings(
    AssignmentKeywords,
    ClientKeywords,
    QueryKeywords,
    SourceKeywords,
    TopologyKeywords,
    total=False,
):
    """Holds settings as they are given in Python; those that are not given keep their defaults."""

    bootstrap_servers: str
    processing_guarantee: ProcessingGuarantee
    group_protocol: GroupProtocol
    commit_interval_ms: int | None
    num_stream_threads: int
    topology_optimization: str
    state_dir: Path | str
    state_cleanup_delay_ms: int
    rocksdb_memory_max_bytes: int
    replication_factor: int
    auto_offset_reset: str
    offset_out_of_range: str
    changelog_out_of_range: Literal["fail", "earliest"]
    transaction_timeout_ms: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    task_timeout_ms: int
    request_timeout_ms: int
    cache_max_bytes: int
    num_standby_replicas: int
    max_warmup_replicas: int
    acceptable_recovery_lag: int
    probing_rebalance_interval_ms: int
    client_tags: dict[str, str]
    rack_aware_assignment_tags: list[str]
    repartition_purge_interval_ms: int
    shutdown_timeout_ms: int
    uncaught_exception_handler: UncaughtExceptionHandler | UncaughtResponseName
    stuck_after_ms: int
    log_values: Literal["none", "types", "full"]
    health_port: int | None
    metrics_port: int | None
    health_host: str
    broker_metrics_port: int | None
    metrics_recording_level: RecordingLevelName
    log_level: LogLevel
    log_format: LogFormat
    max_poll_records: int
    deserialization_handler: ExceptionHandler | str
    processing_handler: ExceptionHandler | str
    production_handler: ExceptionHandler | str
    metadata_max_age_ms: int
    max_task_idle_ms: int
    buffered_records_per_partition: int
    statestore_uncommitted_max_bytes: int
    cut_retention_ms: int
    ledger: bool
    clock_shift_file: Path | None
    connection: ConnectionSettings | dict[str, Any]
    consumer: dict[str, Any]
    producer: dict[str, Any]
    schema_registry: SchemaRegistrySettings | dict[str, Any]
