"""List what public Grafana dashboards for Kafka Streams query: names and labels alone.

These are of "Kafka Streams - RocksDb Memory" (uid KQTZzl0nz), which Confluent publishes in
jmx-monitoring-stacks for the JMX exporter with its rules of Kafka Streams. A panel selects either
all threads of a client or one thread; the legend has task and store.
"""

from __future__ import annotations

PREFIX = "kafka_streams_stream_state_metrics_"
CLIENTS = "kafka_streams_stream_metrics"
"""The figure whose label `client_id` fills the variable of the application."""
THREADS = "kafka_streams_stream_thread_metrics_process_total"
"""The figure whose label `thread_id` fills the variable of the thread."""

OF_A_CLIENT = (
    "block_cache_capacity",
    "block_cache_usage",
    "block_cache_pinned_usage",
    "size_all_mem_tables",
    "num_immutable_mem_table",
    "total_sst_files_size",
    "estimate_num_keys",
    "compaction_pending",
    "mem_table_flush_pending",
    "background_errors",
)
OF_A_THREAD = (
    "block_cache_capacity",
    "block_cache_usage",
    "block_cache_pinned_usage",
    "size_all_mem_tables",
    "cur_size_active_mem_table",
    "num_entries_active_mem_table",
    "num_immutable_mem_table",
    "num_entries_imm_mem_tables",
    "num_deletes_active_mem_table",
    "num_deletes_imm_mem_tables",
    "estimate_num_keys",
    "estimate_pending_compaction_bytes",
    "background_errors",
    "total_sst_files_size",
    "live_sst_files_size",
    "estimate_table_readers_mem",
    "num_live_versions",
    "bytes_written_rate",
    "bytes_read_rate",
    "memtable_bytes_flushed_rate",
    "block_cache_data_hit_ratio",
    "block_cache_filter_hit_ratio",
    "block_cache_index_hit_ratio",
    "memtable_hit_ratio",
    "number_open_files",
    "number_file_errors_total",
)


def list_queries(environment: str, client_id: str, thread_id: str) -> list[str]:
    """Return the queries of all panels, with these values of the dashboard's variables."""
    return [
        *(
            f'{PREFIX}{each}{{env="{environment}",thread_id=~"{client_id}.*"}}'
            for each in OF_A_CLIENT
        ),
        *(f'{PREFIX}{each}{{env="{environment}",thread_id="{thread_id}"}}' for each in OF_A_THREAD),
    ]
