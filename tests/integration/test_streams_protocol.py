"""Test applications whose group has the streams protocol (KIP-1071): the broker assigns tasks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from typer.testing import CliRunner

from benchmarks.streams_group import configure_group
from streams import StreamsError
from streams.commands.root import cli
from streams.processes.running import RunningApp
from streams.runtime.threads.commit import CommitStep
from tests.integration.cluster import Topics, Worker, stored_counts
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = pytest.mark.sampled(1, by="broker")

RECORDS = 1_000
VARIABLE = "MILLRACE_GROUP_PROTOCOL"
_SET = AlterConfigOpType.SET
NewWorker = Callable[..., Worker]


def wait_until_it_runs(worker: Worker) -> None:
    worker.wait_until_ready(lambda: "-> RUNNING" in worker.log_since(0))


def load_and_wait(topics: Topics) -> None:
    topics.load(RECORDS)
    topics.wait_for_counts(topics.loaded)


def start_all_and_kill_first(topics: Topics, workers: Sequence[Worker]) -> None:
    """Start the workers and kill the first, which is started again; load before and after."""
    for worker in workers:
        worker.start()
    load_and_wait(topics)
    workers[0].kill()
    workers[0].start()
    load_and_wait(topics)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "step", [CommitStep.PRODUCED.name, CommitStep.OFFSETS_SENT.name, CommitStep.COMMITTED.name]
)
def test_counts_are_exact_while_workers_are_killed(
    topics: Topics,
    new_worker: NewWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    """Kill one of two workers in a commit, and then the other one, and end the first in order."""
    monkeypatch.setenv(VARIABLE, "streams")
    one, two = new_worker(state="one"), new_worker(state="two")
    one.start()
    two.start()
    load_and_wait(topics)
    one.kill()
    one = new_worker(state="one")
    one.start(kill_at=step, kill_commit=3)
    one.load_until_killed(topics)
    one.start()
    load_and_wait(topics)
    two.kill()
    two.start()
    load_and_wait(topics)
    one.finish()
    load_and_wait(topics)
    two.finish()
    assert topics.counts() == topics.truth
    stored = stored_counts(tmp_path / "two", topics.application)
    assert stored == topics.truth, "the last worker had all tasks"


def test_a_worker_that_was_killed_has_its_tasks_back_at_once(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that nobody waits for the end of its former session, which is 45 s."""
    monkeypatch.setenv(VARIABLE, "streams")
    worker = new_worker()
    worker.start()
    load_and_wait(topics)
    worker.kill()
    worker.start()
    load_and_wait(topics)
    assert "its worker was started anew" in worker.log_since(0)
    worker.finish()
    assert topics.counts() == topics.truth


def test_workers_that_share_a_directory_never_wait_for_each_others_standby_tasks(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill one of two workers on a directory and end the other, in a group with standby tasks."""
    monkeypatch.setenv(VARIABLE, "streams")
    group = ConfigResource(ConfigResource.Type.GROUP, topics.application)
    group.add_incremental_config(
        ConfigEntry("streams.num.standby.replicas", "1", incremental_operation=_SET)
    )
    admin = AdminClient({"bootstrap.servers": topics.servers})
    admin.incremental_alter_configs([group])[group].result(HANG_LIMIT_S)
    workers = [new_worker(), new_worker()]
    start_all_and_kill_first(topics, workers)
    wait_until(lambda: len(describe(topics)["members"]) == 2, what="both workers are members")
    members = describe(topics)["members"]
    assert [each["standby"] for each in members] == [[], []]
    (directory,) = {each["directory"] for each in members}
    assert directory, "the group knows the directory"
    assert len({each["process"] for each in members}) == 2
    workers[1].finish()
    load_and_wait(topics)
    workers[0].finish()
    assert topics.counts() == topics.truth
    assert "is in use by process" not in "".join(worker.log_since(0) for worker in workers)


def describe(topics: Topics) -> dict[str, Any]:
    """Return what `millrace group describe --json` tells of the application's group."""
    report: dict[str, Any] = json.loads(ask(topics, "describe", topics.application))
    return report


def list_protocols(topics: Topics) -> dict[str, str]:
    """Return the protocol of each group that `millrace group list --json` lists."""
    listed = map(json.loads, ask(topics, "list").splitlines())
    return {each["group"]: each["protocol"] for each in listed}


def ask(topics: Topics, *arguments: str) -> str:
    """Run `millrace group ... --json` and return what it prints."""
    command = ["group", *arguments, "--json", "--bootstrap-servers", topics.servers]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_group_changes_its_protocol_there_and_back(
    topics: Topics, new_worker: NewWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follow docs/upgrading.md: end all workers, and start them with the other protocol.

    One is killed in each protocol.
    """
    for protocol in ("classic", "streams", "classic"):
        monkeypatch.setenv(VARIABLE, protocol)
        workers = [new_worker(state=state) for state in ("one", "two")]
        start_all_and_kill_first(topics, workers)
        told = describe(topics)
        expected = "classic" if protocol == "classic" else "streams"
        assert told["protocol"] == expected
        for worker in workers:
            worker.finish()
        assert topics.counts() == topics.truth, protocol


def test_the_members_and_tasks_of_a_group_are_told(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "streams")
    configure_group(
        topics.servers, topics.application, standbys=0, session_ms=7_000, heartbeat_ms=500
    )
    worker = new_worker()
    worker.start()
    load_and_wait(topics)
    session = f"streams.session.timeout.ms of group {topics.application!r} is 7000"
    assert session in worker.log_since(0)
    told = describe(topics)
    (member,) = told["members"]
    assert (told["state"], told["protocol"]) == ("Stable", "streams")
    assert [task["task"] for task in member["active"]] == ["0_0", "0_1", "0_2"]
    assert [task["partitions"][0]["topic"] for task in member["active"]] == [topics.source] * 3
    assert told["unassigned"] == []
    assert list_protocols(topics)[topics.application] == "streams"
    worker.finish()
    assert list_protocols(topics)[topics.application] == "streams"


@pytest.mark.parametrize(("first", "second"), [("classic", "streams"), ("streams", "classic")])
def test_a_member_of_the_other_protocol_is_told_what_to_do(
    topics: Topics,
    new_worker: NewWorker,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    second: str,
) -> None:
    """Start a worker by either protocol beside one of the other: it ends, and `auto` joins it."""
    monkeypatch.setenv(VARIABLE, first)
    running = new_worker(state="running")
    running.start()
    wait_until_it_runs(running)
    monkeypatch.setenv(VARIABLE, second)
    refused = new_worker(state="refused")
    refused.start()
    advice = f"set group_protocol='{first}' or 'auto'"
    refused.wait_until_ready(lambda: advice in refused.log_since(0))
    monkeypatch.setenv(VARIABLE, "auto")
    joining = new_worker(state="joining")
    joining.start()
    wait_until_it_runs(joining)
    load_and_wait(topics)
    joining.finish()
    running.finish()
    assert topics.counts() == topics.truth


def test_another_topology_is_refused_with_the_way_out(
    topics: Topics, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A streams group keeps its topology; an interlude of the classic protocol lets it change."""
    topics.create(f"{topics.target}-odd")
    monkeypatch.setenv(VARIABLE, "streams")
    worker = new_worker()
    worker.start()
    load_and_wait(topics)
    worker.finish()
    worker.change_kind("upgraded")
    worker.start()
    worker.wait_until_ready(lambda: "was formed with another topology" in worker.log_since(0))
    changelog = f"{topics.application}-odd-changelog"
    assert f"They differ: changelog {changelog!r} is of this worker only" in worker.log_since(0)
    worker.kill()
    for protocol in ("classic", "streams"):
        monkeypatch.setenv(VARIABLE, protocol)
        worker.start()
        load_and_wait(topics)
        worker.finish()
    assert topics.counts() == topics.truth


def test_a_shutdown_of_the_application_ends_every_worker(topics: Topics, tmp_path: Path) -> None:
    """Let one thread fail: the worker without a part in it ends as well, and says who asked."""

    def start(state: str) -> RunningApp:
        return build(
            topics.application,
            topics.source,
            topics.target,
            kind="poison",
            bootstrap_servers=topics.servers,
            state_dir=tmp_path / state,
            group_protocol="streams",
            uncaught_exception_handler="shutdown_application",
        ).start()

    first, second = start("one"), start("two")
    first.wait_for("RUNNING", HANG_LIMIT_S)
    second.wait_for("RUNNING", HANG_LIMIT_S)
    topics.load(10)  # some of which is poison, in one partition or more
    errors = []
    for running in (first, second):
        running.wait_for("ERROR", HANG_LIMIT_S)
        with pytest.raises(StreamsError) as raised:
            running.close()
        errors.append(str(raised.value))
    assert any("is poison" in error for error in errors)
    assert all("is poison" in each or "requested a shutdown" in each for each in errors)


def test_a_plan_compares_with_the_topology_of_the_group_that_is_there(
    topics: Topics, new_worker: NewWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change nothing of the topology, and a setting that goes into those of internal topics."""
    monkeypatch.setenv(VARIABLE, "streams")
    worker = new_worker()
    worker.start()
    load_and_wait(topics)
    worker.finish()
    module = topics.application.replace("-", "_")
    (tmp_path / f"{module}.py").write_text(
        "from tests.integration.worker import build\n"
        f"names = ({topics.application!r}, {topics.source!r}, {topics.target!r})\n"
        "same = build(*names, kind='count')\n"
        "other = build(*names, kind='count', topic_defaults={'segment.ms': '60000'})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def plan(app: str) -> dict[str, Any]:
        options = ["--bootstrap-servers", topics.servers, "--json"]
        result = CliRunner().invoke(cli, ["plan", f"{module}:{app}", *options])
        planned: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == planned["status"], result.output
        return planned

    assert (plan("same")["status"], plan("same")["refusals"]) == (0, [])
    refused = plan("other")
    assert refused["status"] == 4
    changelog = f"changelog '{topics.application}-counts-changelog'"
    (refusal,) = refused["refusals"]
    assert f"{changelog} has segment.ms unset of the group, and 60000 of this worker" in refusal
