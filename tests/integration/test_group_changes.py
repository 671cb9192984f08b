"""Test the commands that change a group: `millrace group configure` and `millrace group delete`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streams.commands.root import cli
from tests.integration.cluster import Topics, Worker
from tests.processes import wait_until

STANDBYS = "streams.num.standby.replicas"
NewWorker = Callable[..., Worker]


def run(topics: Topics, command: str, *arguments: str) -> Result:
    words = ["group", command, topics.application, *arguments]
    return CliRunner().invoke(cli, [*words, "--bootstrap-servers", topics.servers])


def list_settings(topics: Topics, *arguments: str) -> dict[str, dict[str, Any]]:
    result = run(topics, "configure", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return {row["name"]: row for row in map(json.loads, result.stdout.splitlines())}


def test_configurations_are_shown_set_and_taken_away(topics: Topics) -> None:
    """A group need not exist for that."""
    assert list_settings(topics)[STANDBYS] == {
        "name": STANDBYS,
        "value": "0",
        "set_for_group": False,
    }
    session = "streams.session.timeout.ms"
    told = list_settings(topics, f"{STANDBYS}=2", f"{session}=50000")
    assert {name: row["value"] for name, row in told.items() if row["set_for_group"]} == {
        STANDBYS: "2",
        session: "50000",
    }
    told = list_settings(topics, f"{STANDBYS}=1", "--unset", session)
    assert told[STANDBYS]["value"] == "1"
    assert (told[session]["value"], told[session]["set_for_group"]) == ("45000", False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "streams.num.standby.replica=1",
            [
                "Unknown group config name: streams.num.standby.replica",
                f"is '{STANDBYS}' meant by 'streams.num.standby.replica'?",
            ],
        ),
        (f"{STANDBYS}=9", [f"{STANDBYS} must be less than or equal to 2"]),
        (f"{STANDBYS}=many", [STANDBYS, "many"]),
        (STANDBYS, [f"'{STANDBYS}' is not NAME=VALUE"]),
    ],
)
def test_what_brokers_do_not_take_is_refused_by_name(
    topics: Topics, given: str, said: list[str]
) -> None:
    result = run(topics, "configure", "streams.heartbeat.interval.ms=6000", given)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    for each in said:
        assert each in result.stderr
    assert not any(row["set_for_group"] for row in list_settings(topics).values())


def test_a_configuration_holds_for_workers_that_run(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLRACE_GROUP_PROTOCOL", "streams")
    workers = [new_worker(state="one"), new_worker(state="two")]
    for worker in workers:
        worker.start()
    topics.load(100)
    topics.wait_for_counts(100)
    list_settings(topics, f"{STANDBYS}=1")

    def has_standby_tasks() -> bool:
        result = run(topics, "describe", "--json")
        members = json.loads(result.stdout)["members"]
        return len(members) == 2 and sum(len(each["standby"]) for each in members) == 3

    wait_until(has_standby_tasks, what="a standby of each task")
    for worker in workers:
        worker.finish()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_group_is_deleted_with_its_offsets_once_it_has_no_members(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setenv("MILLRACE_GROUP_PROTOCOL", protocol)
    worker = new_worker()
    worker.start()
    topics.load(100)
    topics.wait_for_counts(100)
    refused = run(topics, "delete", "--yes")
    assert (refused.exit_code, "end all workers first" in refused.stderr) == (2, True)
    worker.finish()
    unconfirmed = run(topics, "delete")
    assert (unconfirmed.exit_code, "give --yes" in unconfirmed.stderr) == (2, True)
    deleted = run(topics, "delete", "--yes", "--json")
    assert deleted.exit_code == 0, deleted.output
    assert json.loads(deleted.stdout) == {
        "group": topics.application,
        "protocol": protocol,
        "visible_offsets": 3,
        "deleted": True,
    }
    missing = run(topics, "delete", "--yes")
    assert (missing.exit_code, "there is no group" in missing.stderr) == (2, True)
