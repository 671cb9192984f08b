"""Test what `millrace group describe` tells of an application, from its brokers alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from tests.brokers import Broker
from tests.integration.cluster import PARTITIONS, Topics, Worker
from tests.processes import wait_until

TASKS = [f"0_{number}" for number in range(PARTITIONS)]


def run_describe(broker: Broker, group: str, *options: str) -> Result:
    command = ["group", "describe", group, "--bootstrap-servers", broker.bootstrap_servers]
    return CliRunner().invoke(cli, [*command, *options])


def describe_as_json(broker: Broker, group: str) -> dict[str, Any]:
    result = run_describe(broker, group, "--json")
    assert result.exit_code == 0, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def wait_for_report(
    broker: Broker, group: str, accept: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Describe a group until the report is as wanted, and return it."""
    reports: list[dict[str, Any]] = [{}]

    def is_accepted() -> bool:
        reports.append(describe_as_json(broker, group))
        return accept(reports[-1])

    wait_until(is_accepted, what=lambda: json.dumps(reports[-1], indent=1))
    return reports[-1]


def list_tasks(report: dict[str, Any], role: str) -> list[str]:
    return sorted(each["task"] for member in report["members"] for each in member[role])


def test_members_and_their_tasks_are_told_with_what_they_are_behind(
    broker: Broker,
    topics: Topics,
    new_worker: Callable[..., Worker],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MILLRACE_NUM_STANDBY_REPLICAS", "1")
    monkeypatch.setenv("MILLRACE_CLIENT_TAGS", "zone=a")
    workers = [new_worker(state="one"), new_worker(state="two")]
    for worker in workers:
        worker.start()
    topics.load(300)
    topics.wait_for_counts(300)

    def is_at_rest(report: dict[str, Any]) -> bool:
        return (
            len(report["members"]) == 2
            and list_tasks(report, "active") == list_tasks(report, "standby") == TASKS
            and all(t["lag"] == 0 for m in report["members"] for t in m["active"])
        )

    report = wait_for_report(broker, topics.application, is_at_rest)
    assert (report["group"], report["state"]) == (topics.application, "Stable")
    assert report["unassigned"] == []
    assert len({member["process"] for member in report["members"]}) == 2
    for member in report["members"]:
        assert member["instance_id"] == f"{topics.application}-{member['process']}-0"
        assert (member["host"], member["tags"]) == ("127.0.0.1", {"zone": "a"})
        assert not {t["task"] for t in member["active"]} & {t["task"] for t in member["standby"]}
        for task in member["active"]:
            (partition,) = task["partitions"]
            assert partition["topic"] == topics.source
            assert partition["committed_offset"] == partition["end_offset"] > 0

    # As a table, by the App that a program has.
    program = f'from streams import App\napp = App("{topics.application}")\n'
    module = topics.application.replace("-", "_")
    (tmp_path / f"{module}.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    table = run_describe(broker, f"{module}:app").stdout
    assert f"group {topics.application}: Stable, 2 members" in table
    for task in TASKS:
        partition = f"{topics.source}[{task[-1]}]"
        assert any({task, "active", partition} <= {*line.split()} for line in table.splitlines())
        assert any({task, "standby"} <= {*line.split()} for line in table.splitlines())

    for worker in workers:
        worker.finish()
    topics.load(30)
    report = describe_as_json(broker, topics.application)
    assert (report["state"], report["members"]) == ("Empty", [])
    assert sum(partition["lag"] for partition in report["unassigned"]) == 30
    result = run_describe(broker, topics.application)
    assert "Empty, no members" in result.stdout
    assert "no worker runs" in result.stdout


def test_a_group_that_does_not_exist_is_one_line_and_status_2(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    group = unique("nobody")
    result = run_describe(broker, group)
    assert result.exit_code == 2
    assert f"there is no group '{group}' of the classic or the streams protocol" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@contextmanager
def other_program(broker: Broker, topics: Topics, protocol: str) -> Iterator[None]:
    """Run a consumer that is no Millrace application in the group of the application's name."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topics.application,
            "group.protocol": protocol,
        }
    )
    try:
        consumer.subscribe([topics.source])

        def is_assigned() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_until(is_assigned, what="an assignment")
        yield
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("classic", "is not of a Millrace application: member 'rdkafka-"),
        ("consumer", "of the classic or the streams protocol"),
    ],
)
def test_a_group_of_another_program_is_told_from_an_application(
    broker: Broker, topics: Topics, protocol: str, message: str
) -> None:
    with other_program(broker, topics, protocol):
        result = run_describe(broker, topics.application)
    assert result.exit_code == 2
    assert message in result.stderr
    assert f"kafka-consumer-groups.sh --describe --group {topics.application}" in result.stderr
