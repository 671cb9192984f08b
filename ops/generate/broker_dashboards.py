"""Define the dashboards of the embedded broker, and of its transactions and groups."""

from __future__ import annotations

from ops.generate.dashboards import Dashboard, Panel

_BROKER = 'instance=~"$instance"'
_VARIABLES = {"instance": "millrace_broker_info"}


def _build_quantile_query(figure: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile(0.99, sum by ({by}) (rate({figure}_bucket{{{_BROKER}}}[5m])))"


BROKER = Dashboard(
    name="broker",
    title="Millrace: the broker",
    variables=_VARIABLES,
    panels=(
        Panel(
            title="Requests a second, by API",
            unit="reqps",
            queries={
                "{{api}}": f"sum by (api) (rate(millrace_request_seconds_count{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Request latency by API, p99",
            unit="s",
            description="A fetch or a join waits for what it asks for: see work and wait.",
            queries={"{{api}}": _build_quantile_query("millrace_request_seconds", "api")},
        ),
        Panel(
            title="Queue, work and wait of requests: seconds a second",
            unit="s",
            queries={
                part: f"sum(rate(millrace_request_{part}_seconds_sum{{{_BROKER}}}[5m]))"
                for part in ("queue", "work", "wait")
            },
        ),
        Panel(
            title="Errors a second, by API and code",
            unit="ops",
            needs="once a request was refused",
            queries={
                "{{api}} {{code}}": "sum by (api, code) "
                f"(rate(millrace_request_errors_total{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Event loop: busy share",
            unit="percentunit",
            description="Normal: below 0.7.",
            queries={
                "{{instance}}": f"rate(millrace_event_loop_busy_seconds_total{{{_BROKER}}}[5m])"
            },
        ),
        Panel(
            title="Event loop: delay, p99",
            unit="s",
            queries={"delay": _build_quantile_query("millrace_event_loop_delay_seconds")},
        ),
        Panel(
            title="Bytes in and out a second",
            unit="Bps",
            queries={
                "in": f"sum(rate(millrace_topic_bytes_in_total{{{_BROKER}}}[5m]))",
                "out": f"sum(rate(millrace_topic_bytes_out_total{{{_BROKER}}}[5m]))",
            },
        ),
        Panel(
            title="Records in a second, by topic",
            unit="rps",
            queries={
                "{{topic}}": "sum by (topic) "
                f"(rate(millrace_topic_records_in_total{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Connections",
            queries={"{{listener}}": f"sum by (listener) (millrace_connections{{{_BROKER}}})"},
        ),
        Panel(
            title="Waiting requests",
            queries={"{{api}}": f"sum by (api) (millrace_requests_waiting{{{_BROKER}}})"},
        ),
        Panel(
            title="Log flushes, p99",
            unit="s",
            needs="once a log was flushed to the disk",
            queries={"flush": _build_quantile_query("millrace_log_flush_seconds")},
        ),
        Panel(
            title="The ten largest topics",
            unit="bytes",
            queries={"{{topic}}": f"topk(10, sum by (topic) (millrace_log_bytes{{{_BROKER}}}))"},
        ),
        Panel(
            title="Free disk",
            unit="bytes",
            queries={"{{instance}}": f"millrace_disk_free_bytes{{{_BROKER}}}"},
        ),
        Panel(
            title="Cleaner: cleanings in five minutes",
            needs="once the cleaner has run",
            queries={
                "{{outcome}}": "sum by (outcome) "
                f"(increase(millrace_cleaner_runs_total{{{_BROKER}}}[5m]))"
            },
        ),
    ),
)

TRANSACTIONS_AND_GROUPS = Dashboard(
    name="transactions-and-groups",
    title="Millrace: transactions and groups",
    variables=_VARIABLES,
    panels=(
        Panel(
            title="Transactions ended a second",
            unit="ops",
            queries={
                "{{outcome}} {{cause}}": "sum by (outcome, cause) "
                f"(rate(millrace_transactions_ended_total{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Transactions by state",
            queries={"{{state}}": f"sum by (state) (millrace_transactions{{{_BROKER}}})"},
        ),
        Panel(
            title="From the decision to the last marker, p99",
            unit="s",
            queries={
                "{{outcome}}": _build_quantile_query("millrace_transaction_end_seconds", "outcome")
            },
        ),
        Panel(
            title="Age of the oldest open transaction",
            unit="s",
            description="Normal: about the commit interval.",
            needs="while a transaction is open",
            queries={
                "by coordinator": f"max(millrace_transaction_oldest_open_seconds{{{_BROKER}}})",
                "by partition": f"max(millrace_log_open_transaction_seconds{{{_BROKER}}})",
            },
        ),
        Panel(
            title="Offsets that committed readers can't read yet",
            needs="while a transaction is open",
            queries={"{{topic}}": f"max by (topic) (millrace_log_stable_offset_lag{{{_BROKER}}})"},
        ),
        Panel(
            title="Markers queued",
            queries={"markers": f"sum(millrace_markers_queued{{{_BROKER}}})"},
        ),
        Panel(
            title="Groups by state",
            queries={"{{type}} {{state}}": f"sum by (type, state) (millrace_groups{{{_BROKER}}})"},
        ),
        Panel(
            title="Rebalances in five minutes, by cause",
            queries={
                "{{type}} {{cause}}": "sum by (type, cause) "
                f"(increase(millrace_group_rebalances_total{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Duration of rebalances, p99",
            unit="s",
            needs="once a rebalance has ended",
            queries={
                "{{type}}": _build_quantile_query(
                    "millrace_group_rebalance_duration_seconds", "type"
                )
            },
        ),
        Panel(
            title="Sessions expired in five minutes",
            queries={
                "{{type}}": "sum by (type) "
                f"(increase(millrace_group_sessions_expired_total{{{_BROKER}}}[5m]))"
            },
        ),
        Panel(
            title="Offsets committed a second",
            unit="ops",
            queries={"offsets": f"sum(rate(millrace_offset_commits_total{{{_BROKER}}}[5m]))"},
        ),
        Panel(
            title="Shards by state",
            queries={
                "{{coordinator}} {{state}}": "sum by (coordinator, state) "
                f"(millrace_coordinator_shards{{{_BROKER}}})"
            },
        ),
    ),
)
