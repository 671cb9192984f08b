"""Translate the settings of Kafka Streams: what each is called here, or why there is none.

    where they are given        how they are written
    App(...), TOML, --set       with underscores: statestore_cache_max_bytes
    a .properties file          as in Java, with dots (`streams.settings.properties_file`)

A name that is here with underscores needs no entry. One that has no counterpart is refused with the
reason and the other way. The list is that of StreamsConfig in Kafka Streams 4.4, read by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams.errors import ConfigError

RENAMED = {
    "cache_max_bytes_buffering": "cache_max_bytes",
    "statestore_cache_max_bytes": "cache_max_bytes",
    "deserialization_exception_handler": "deserialization_handler",
    "default_deserialization_exception_handler": "deserialization_handler",
    "processing_exception_handler": "processing_handler",
    "production_exception_handler": "production_handler",
    "default_production_exception_handler": "production_handler",
    "default_dsl_store": "default_store",
    "dsl_store_suppliers_class": "default_store",
}
"""The settings that have another name here, with underscores."""

_HANDLERS = {
    "LogAndFailExceptionHandler": "fail",
    "LogAndContinueExceptionHandler": "skip",
    "LogAndFailProcessingExceptionHandler": "fail",
    "LogAndContinueProcessingExceptionHandler": "skip",
    "DefaultProductionExceptionHandler": "fail",
}
_STORES = {
    "rocksDB": "rocksdb",
    "RocksDBDslStoreSuppliers": "rocksdb",
    "InMemoryDslStoreSuppliers": "in_memory",
}
_VALUES: Mapping[str, Mapping[str, str]] = {
    "deserialization_handler": _HANDLERS,
    "processing_handler": _HANDLERS,
    "production_handler": _HANDLERS,
    "default_store": _STORES,
    "processing_guarantee": {"exactly_once_beta": "exactly_once_v2"},
    "metrics_recording_level": {"INFO": "info", "DEBUG": "debug", "TRACE": "trace"},
}
"""The values that are written otherwise here: names of Java's classes, and former names."""

_IGNORING_CASE = {"group_protocol"}
"""The settings whose values Kafka Streams takes in any case."""

_SERDES = "serdes are said where they are needed: key= and value= of stream, table and to"
_CLIENTS = "the settings of clients go to consumer={...} and producer={...}, by librdkafka's names"
REFUSED = {
    "allow_os_group_write_access": "directories have the rights of the process: set its umask",
    "application_id": "it is the first argument of App",
    "built_in_metrics_version": "metrics have one version (docs/metrics.md)",
    "client_id": "clients are named after the application and the thread (docs/logging.md)",
    "config_providers": "values come from files and MILLRACE_* variables; connection={...} reads "
    "secrets from files",
    "connections_max_idle_ms": _CLIENTS,
    "default_client_supplier": "clients are created by the runtime: TopologyTestDriver replaces "
    "them in tests",
    "default_interactive_query_isolation_level": "queries read what is committed",
    "default_key_serde": _SERDES,
    "default_value_serde": _SERDES,
    "default_list_key_serde_inner": _SERDES,
    "default_list_key_serde_type": _SERDES,
    "default_list_value_serde_inner": _SERDES,
    "default_list_value_serde_type": _SERDES,
    "dsl_store_format": "stores have one format (docs/state.md)",
    "enable_metrics_push": "metrics are scraped from metrics_port",
    "enable_transactional_statestores": "stores are always transactional",
    "errors_dead_letter_queue_topic_name": "set deserialization_handler=dead_letter:<topic>, and "
    "the other handlers",
    "log_summary_interval_ms": "running.metrics() and /metrics have the figures at any time",
    "metadata_cluster_check_enable": "Kafka's cluster ids are checked where they matter: by the "
    "ids of topics",
    "metadata_recovery_rebootstrap_trigger_ms": _CLIENTS,
    "metadata_recovery_strategy": _CLIENTS,
    "metric_reporters": "metrics are scraped from metrics_port",
    "metrics_num_samples": "metrics are counters and histograms: the one who scrapes them samples",
    "metrics_sample_window_ms": "metrics are counters and histograms: the one who scrapes them "
    "samples",
    "poll_ms": "a thread sleeps until there is something to do",
    "processing_exception_handler_global_enabled": "processors of global stores always have the "
    "processing_handler",
    "processor_wrapper_class": "give the function: App(..., processor_wrapper=...)",
    "receive_buffer_bytes": _CLIENTS,
    "reconnect_backoff_max_ms": _CLIENTS,
    "reconnect_backoff_ms": _CLIENTS,
    "retry_backoff_ms": _CLIENTS,
    "rocksdb_config_setter": "RocksDB options go to Store.persistent(rocksdb=lambda options: ...)",
    "security_protocol": "set security.protocol in connection={...}",
    "send_buffer_bytes": _CLIENTS,
    "state_cleanup_dir_max_age_ms": "directories of tasks that run elsewhere are removed after "
    "state_cleanup_delay_ms",
    "task_assignor_class": "give the function: App(..., task_assignor=...)",
    "topology_description_push_enabled": "millrace plan prints the topology",
    "upgrade_from": "versions that share no protocol are told apart by themselves "
    "(docs/upgrading.md)",
    "window_size_ms": "a windowed serde is made with its windows: serdes know their size",
    "windowed_inner_class_serde": _SERDES,
    "windowstore_changelog_additional_retention_ms": "changelogs of windows expire by stream time, "
    "and not by the clock",
}
"""The settings that have no counterpart, with underscores: the reason, or the other way."""

DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "allow.os.group.write.access": ("false",),
    "built.in.metrics.version": ("latest",),
    "config.providers": ("",),
    "default.client.supplier": (
        "org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier",
    ),
    "default.interactive.query.isolation.level": ("READ_UNCOMMITTED", "READ_COMMITTED"),
    "dsl.store.format": ("DEFAULT",),
    "enable.metrics.push": ("true", "false"),
    "enable.transactional.statestores": ("true", "false"),
    "errors.dead.letter.queue.topic.name": ("",),
    "log.summary.interval.ms": ("120000",),
    "metadata.cluster.check.enable": ("true",),
    "metric.reporters": ("", "org.apache.kafka.common.metrics.JmxReporter"),
    "metrics.num.samples": ("2",),
    "metrics.sample.window.ms": ("30000",),
    "poll.ms": ("100",),
    "processing.exception.handler.global.enabled": ("true", "false"),
    "processor.wrapper.class": (
        "org.apache.kafka.streams.processor.internals.NoOpProcessorWrapper",
    ),
    "rocksdb.config.setter": ("",),
    "state.cleanup.dir.max.age.ms": ("-1",),
    "task.assignor.class": ("",),
    "topology.description.push.enabled": ("true", "false"),
    "upgrade.from": ("", "null"),
    "windowstore.changelog.additional.retention.ms": ("86400000",),
}
"""The values of such settings that have no effect, as if they were left out: Java's defaults, and
what is always so here. They are those of a file, with dots."""

_DEAD_LETTERS = "errors_dead_letter_queue_topic_name"


def move_dead_letter_topic_to_handlers(settings: dict[str, Any]) -> None:
    """Give the handlers of renamed `settings` that skip records the topic of dead letters, if any.

    Kafka Streams' LogAndContinue handlers write to it. Raises ConfigError if no handler goes on.
    """
    topic = settings.pop(_DEAD_LETTERS, "")
    handlers = [f"{stage}_handler" for stage in ("deserialization", "processing", "production")]
    skipping = [name for name in handlers if settings.get(name) == "skip"]
    if topic and not skipping:
        raise ConfigError(
            "errors.dead.letter.queue.topic.name: no handler goes on after a dead letter: set "
            "deserialization.exception.handler or processing.exception.handler to a LogAndContinue "
            "handler, or leave the topic out, as handlers that fail write no dead letter here"
        )
    settings.update(dict.fromkeys(skipping, f"dead_letter:{topic}") if topic else {})


def rename_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with Kafka Streams' names and values replaced by those that they have here.

    Raises ConfigError where two names of one setting have different values.
    """
    renamed: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    for name, value in given.items():
        setting = RENAMED.get(name, name)
        translated = _translate_value(setting, value)
        other_name = given_as.setdefault(setting, name)
        if renamed.setdefault(setting, translated) != translated:
            raise ConfigError(
                f"{other_name} and {name} are one setting, and have different values: give one"
            )
    return renamed


def _translate_value(setting: str, value: Any) -> Any:
    """Return a value as it is written here: a class by its last name, a former name by the new."""
    if isinstance(value, str) and setting in _IGNORING_CASE:
        return value.lower()
    if not isinstance(value, str) or setting not in _VALUES:
        return value
    last_name = value.rpartition(".")[2].rpartition("$")[2]
    return _VALUES[setting].get(last_name, value)
