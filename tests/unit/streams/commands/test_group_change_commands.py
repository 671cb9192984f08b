"""Test what the commands that change a group say where brokers answer late, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streams.commands import group_change_commands
from streams.commands.root import cli
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown, StreamsError
from streams.runtime.clients.cluster_admin import GroupListing, GroupSetting

STANDBYS, SESSION = "streams.num.standby.replicas", "streams.session.timeout.ms"
DEFAULTS = {STANDBYS: "0", SESSION: "45000"}


class FakeClusterAdmin:
    """Represents a controller with a group's configurations, and a broker that applies them late.

    The next `late` read-backs show what was before; `refusal` is raised by the change, and
    `failure` by each read.
    """

    def __init__(self) -> None:
        self.own: dict[str, str] = {}
        self.late = 0
        self.refusal: Exception | None = None
        self.failure: Exception | None = None
        self.is_deleted = False
        self._before: dict[str, str] = {}

    def alter_group_settings(self, group: str, changes: Mapping[str, str | None]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self._before = dict(self.own)
        for name, value in changes.items():
            self.own.pop(name, None)
            if value is not None:
                self.own[name] = value.strip().lstrip("0") or "0"

    def fetch_group_settings(self, group: str) -> dict[str, GroupSetting]:
        if self.failure is not None:
            raise self.failure
        shown = self.own if self.late <= 0 else self._before
        self.late -= 1
        defaults = {name: GroupSetting(value, True) for name, value in DEFAULTS.items()}
        return defaults | {name: GroupSetting(value, False) for name, value in shown.items()}

    def delete_group(self, group: str) -> None:
        self.is_deleted = True


class FakeClients:
    """Gives a command the fake admin, a list of groups, and one committed offset."""

    servers = "memory:9092"

    def __init__(self) -> None:
        self.cluster_admin = FakeClusterAdmin()
        self.groups = [GroupListing("words", "Empty", "streams")]

    def list_groups(self) -> list[GroupListing]:
        return self.groups

    def ask_brokers(self, _request: Any) -> CommittedOffsets:
        return CommittedOffsets({Partition("in", 0): OffsetAndMetadata(1, "")}, [])


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> FakeClients:
    found = FakeClients()
    monkeypatch.setattr("streams.commands.cluster_clients.connect_clients", lambda _: found)
    return found


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["group", command, *arguments, "--json"])


def read_own(result: Result) -> dict[str, str]:
    rows = map(json.loads, result.stdout.splitlines())
    return {row["name"]: row["value"] for row in rows if row["set_for_group"]}


@pytest.mark.parametrize("given", ["2", " 2", "02"])
def test_a_change_that_brokers_apply_late_is_waited_for(clients: FakeClients, given: str) -> None:
    clients.cluster_admin.own = {SESSION: "50000"}
    clients.cluster_admin.late = 2
    result = run("configure", "words", f"{STANDBYS}={given}", "--unset", SESSION)
    assert (result.exit_code, result.stderr) == (0, "")
    assert read_own(result) == {STANDBYS: "2"}
    assert clients.cluster_admin.late < 0


def test_a_change_that_is_not_shown_in_time_was_made(
    clients: FakeClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_change_commands, "SHOWN_WAIT_S", 0.0)
    clients.cluster_admin.late = 99
    result = run("configure", "words", f"{STANDBYS}=2")
    assert (result.exit_code, read_own(result)) == (0, {})
    assert f"{STANDBYS} changed, and the broker that was asked does not show it" in result.stderr


def test_a_change_that_can_not_be_read_back_was_made(clients: FakeClients) -> None:
    clients.cluster_admin.failure = OutcomeUnknown("no answer")
    result = run("configure", "words", f"{STANDBYS}=2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"{STANDBYS} changed, and can't be read back: no answer" in result.stderr
    assert clients.cluster_admin.own == {STANDBYS: "2"}


def test_a_refusal_is_told_also_where_no_hint_can_be_found(clients: FakeClients) -> None:
    clients.cluster_admin.refusal = StreamsError("Unknown group config name: x")
    clients.cluster_admin.failure = OutcomeUnknown("no answer")
    result = run("configure", "words", "x=2")
    assert result.exit_code == 2
    assert "nothing was changed, Unknown group config name: x" in result.stderr
    assert "no answer" not in result.stderr


def test_configurations_of_a_group_that_is_not_there_are_noted(clients: FakeClients) -> None:
    result = run("configure", "word", f"{STANDBYS}=2")
    assert (result.exit_code, read_own(result)) == (0, {STANDBYS: "2"})
    assert "there is no group 'word' yet that this user sees" in result.stderr
    assert "is 'words' meant by 'word'?" in result.stderr


def test_the_question_before_a_deletion_says_whose_count_of_offsets_it_has(
    clients: FakeClients,
) -> None:
    asked = run("delete", "words")
    assert (asked.exit_code, clients.cluster_admin.is_deleted) == (2, False)
    assert "with all of its offsets, of which this user sees 1?" in asked.stderr
    deleted = json.loads(run("delete", "words", "--yes").stdout)
    assert deleted == {
        "group": "words",
        "protocol": "streams",
        "visible_offsets": 1,
        "deleted": True,
    }
