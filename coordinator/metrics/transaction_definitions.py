"""Define the figures of the transaction coordinator."""

from __future__ import annotations

from coordinator.metrics.definition import MetricDefinition

TRANSACTION_DEFINITIONS = (
    MetricDefinition(
        name="millrace_transactions",
        kind="gauge",
        help="Transactional ids by state.",
        unit="transactions",
        labels=("shard", "state"),
        group="transaction-coordinator",
        answers="OngoingTransactionsCount",
    ),
    MetricDefinition(
        name="millrace_transactions_ended_total",
        kind="counter",
        help="Decided transactions, by outcome and cause: client, init or timeout.",
        unit="transactions",
        labels=("outcome", "cause"),
        group="transaction-coordinator",
        answers="TransactionTimeoutRate, AbortRate",
    ),
    MetricDefinition(
        name="millrace_transaction_end_seconds",
        kind="histogram",
        help="Time from the decision of a transaction's end to its last marker, by outcome.",
        unit="seconds",
        labels=("outcome",),
        group="transaction-coordinator",
        answers="CommitLatencyAvg",
    ),
    MetricDefinition(
        name="millrace_transaction_oldest_open_seconds",
        kind="gauge",
        help="Age of the oldest open transaction, 0 if none is open.",
        unit="seconds",
        group="transaction-coordinator",
        answers="age of the oldest open transaction",
    ),
    MetricDefinition(
        name="millrace_transactions_overdue",
        kind="gauge",
        help="Open transactions that are older than their time-out.",
        unit="transactions",
        group="transaction-coordinator",
    ),
    MetricDefinition(
        name="millrace_transactional_ids_expired_total",
        kind="counter",
        help="Transactional ids that expired, as nobody used them.",
        group="transaction-coordinator",
    ),
    MetricDefinition(
        name="millrace_markers_queued",
        kind="gauge",
        help="Partitions that wait for a transaction's marker.",
        unit="partitions",
        group="transaction-coordinator",
        kafka_name="kafka.coordinator.transaction:type=TransactionMarkerChannelManager,"
        "name=UnknownDestinationQueueSize",
        answers="UnknownDestinationQueueSize",
    ),
    MetricDefinition(
        name="millrace_markers_retrying",
        kind="gauge",
        help="Those of them whose marker was refused and is sent again.",
        unit="partitions",
        group="transaction-coordinator",
    ),
    MetricDefinition(
        name="millrace_transaction_appends_retrying",
        kind="gauge",
        help="Transactions whose end could not be logged, and is logged again.",
        unit="transactions",
        group="transaction-coordinator",
        kafka_name="kafka.coordinator.transaction:type=TransactionMarkerChannelManager,"
        "name=LogAppendRetryQueueSize",
        answers="LogAppendRetryQueueSize",
    ),
    MetricDefinition(
        name="millrace_markers_total",
        kind="counter",
        help="Markers by outcome: written, retried or given_up.",
        unit="partitions",
        labels=("outcome",),
        group="transaction-coordinator",
    ),
)
