"""Test that ops/ and its pages are what their generator writes, of figures that are defined."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import ExitStack
from typing import Any

import pytest
import typer

from coordinator.metrics.definitions import all_definitions as broker_definitions
from ops.generate.alert_list import list_alerts
from ops.generate.alerts import Alert
from ops.generate.dashboard_list import list_dashboards
from ops.generate.dashboards import Dashboard
from ops.generate.definitions import list_defined_samples
from ops.generate.files import ROOT, render_files
from ops.generate.queries import find_metrics, scale_durations
from streams.commands.root import cli
from streams.monitoring.definitions.catalog import all_definitions as worker_definitions

DEFINED = list_defined_samples()
FILES = render_files()
WRITE = "write it with: python -m ops.generate"


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_what_the_generator_writes(path: str) -> None:
    assert (ROOT / path).read_text() == FILES[path], WRITE


def test_no_dashboard_is_left_that_the_generator_does_not_write() -> None:
    written = {str(each.relative_to(ROOT)) for each in (ROOT / "ops/dashboards").iterdir()}
    assert written == {each for each in FILES if each.startswith("ops/dashboards/")}


@pytest.mark.parametrize("alert", list_alerts(), ids=lambda alert: alert.name)
def test_an_alert_names_figures_that_are_defined(alert: object) -> None:
    expression = str(getattr(alert, "expression", ""))
    assert find_metrics(expression) - DEFINED == set()
    assert find_metrics(expression) or expression.startswith("up{")


def read_command(line: str) -> list[str]:
    """Return the words of a command of ours, as it is typed, and what it does not know of them.

    Raises: AssertionError for a command that does not exist.
    """
    found: Any = typer.main.get_command(cli)
    _, *words = shlex.split(line)
    with ExitStack() as exits:
        while hasattr(found, "get_command"):
            context = exits.enter_context(typer.Context(found))
            found = found.get_command(context, words.pop(0))
            assert found is not None, line
    known = {name for each in found.params for name in each.opts}
    return [word for word in words if word.startswith("-") and word not in known]


@pytest.mark.parametrize("alert", list_alerts(), ids=lambda alert: alert.name)
def test_an_alert_has_commands_that_exist_and_says_when_it_ends(alert: Alert) -> None:
    ours = [each for each in alert.commands if each.startswith("millrace ")]
    assert {option for line in ours for option in read_command(line)} == set()
    ask_brokers = {"group", "txn", "topics", "consume", "doctor"}
    assert all("--bootstrap-servers SERVERS" in e for e in ours if e.split()[1] in ask_brokers)
    others = {each.split()[0] for each in alert.commands} - {"millrace"}
    assert others <= {"curl", "df", "iostat", "kafka-configs.sh"}
    assert alert.commands
    assert alert.end.endswith(".")
    section = FILES["docs/alerts.md"].partition(f"### {alert.name}\n")[2].partition("\n### ")[0]
    assert "\nWhat it can lead to: " in section
    assert "\nWhen it ends: " in section


def test_a_command_that_does_not_exist_is_found() -> None:
    assert read_command("millrace txn list --topics T") == ["--topics"]
    with pytest.raises(AssertionError):
        read_command("millrace txn show")


@pytest.mark.parametrize("dashboard", list_dashboards(), ids=lambda dashboard: dashboard.name)
def test_a_dashboard_names_figures_that_are_defined(dashboard: Dashboard) -> None:
    queries = [query for panel in dashboard.panels for query in panel.queries.values()]
    assert all(map(find_metrics, queries))
    named = set[str]().union(*map(find_metrics, queries), dashboard.variables.values())
    assert named - DEFINED == set()


def test_each_alert_has_a_section_that_its_link_leads_to() -> None:
    headings = re.findall(r"^### (\w+)$", FILES["docs/alerts.md"], re.MULTILINE)
    anchors = re.findall(r"docs/alerts\.md#([\w-]+)", FILES["ops/alerts.yml"])
    assert [each.lower() for each in headings] == anchors
    assert len(anchors) == len(set(anchors)) == len(list_alerts())


def test_dashboards_are_json_with_a_panel_for_each_definition() -> None:
    for dashboard in list_dashboards():
        panels = json.loads(FILES[f"ops/dashboards/{dashboard.name}.json"])["panels"]
        assert [each["title"] for each in panels] == [each.title for each in dashboard.panels]
        assert all(target["expr"] for each in panels for target in each["targets"])


def test_a_figure_that_is_not_defined_is_found() -> None:
    query = 'sum by (x) (rate(millrace_renamed_total{state="millrace_quoted"}[5m]))'
    assert find_metrics(query) - DEFINED == {"millrace_renamed_total"}


def test_durations_are_scaled_and_limits_are_not() -> None:
    query = "rate(a[5m]) > 60 and b offset 1w and c[1h:1m]"
    assert scale_durations(query, 60) == "rate(a[5s]) > 60 and b offset 10080s and c[60s:3s]"
    assert scale_durations(query, 1) == query


def test_the_page_of_figures_has_each_definition_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", FILES["docs/metrics.md"], re.MULTILINE)
    assert rows == [
        *(each.name for each in worker_definitions()),
        *(each.name for each in broker_definitions()),
    ]
    assert len(rows) == len(set(rows))


OLDER_NAMES = [
    "active-group-count",
    "group-creation-rate",
    "group-deletion-rate",
    "member-join-rate",
    "member-leave-rate",
    "rebalance-rate",
    "rebalance-duration-avg",
    "rebalance-duration-max",
    "rebalance-failure-rate",
    "heartbeat-rate",
    "heartbeat-latency",
    "assignment-compute-time",
    "assignment-change-rate",
    "event-queue-size",
    "event-queue-time-ms",
    "event-processing-time-ms",
    "event-purgatory-time-ms",
    "batch-flush-time-ms",
    "thread-idle-ratio-avg",
    "partition-load-time-avg",
    "num-partitions{state}",
    "offset-commit-rate",
    "offset-expiration-rate",
    "offset-deletion-rate",
    "OngoingTransactionsCount",
    "TransactionTimeoutRate",
    "AbortRate",
    "CommitLatencyAvg",
    "TxnOffsetCommitRate",
    "UnknownDestinationQueueSize",
    "LogAppendRetryQueueSize",
    "txn-commit-time-avg",
    "txn-abort-time-avg",
    "bufferpool-wait-time",
    "metadata-wait-time",
    "record-send-rate",
    "byte-rate",
    "batch-size-avg",
    "records-per-request-avg",
    "record-error-rate",
    "task-corrupted-rate",
    "skipped-records-rate",
    "LogFlushRateAndTimeMs",
    "TotalTimeMs",
    "RequestHandlerAvgIdlePercent",
    "NetworkProcessorAvgIdlePercent",
    "ProducePurgatorySize",
    "BytesInPerSec",
    "BytesOutPerSec",
    "MessagesInPerSec",
    "TotalFetchRequestsPerSec",
    "UnderReplicatedPartitions",
    "OfflinePartitionsCount",
    "ActiveControllerCount",
]
"""What documents of Kafka and of its dashboards call figures, many of which Kafka never had."""


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_each_older_name_has_an_answer_or_a_reason(name: str) -> None:
    _, _, answers = FILES["docs/metrics.md"].partition("## Names in older documents")
    told = [line.split("|")[1] for line in answers.splitlines() if line.startswith("| ")]
    assert any(name in re.split(r"[,;: ]+", each.strip()) for each in told)
