"""Test what a reset deletes, and that a worker is refused after one that was interrupted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError
from streams.commands.cluster_clients import connect_clients, load_command_config
from streams.commands.root import cli
from streams.errors import OutcomeUnknown
from streams.runtime.clients.cluster_admin import ClusterAdmin
from tests.brokers import IN_CI
from tests.integration.cluster import Topics, Worker
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

PROGRAM = """
from tests.integration.worker import build

app = build("{name}", "{source}", "{target}", kind="count")
"""


def fail(*_: Any, **__: Any) -> None:
    raise OutcomeUnknown("interrupted")


@pytest.mark.parametrize(
    ("holder", "step", "refusal"),
    [
        (ClusterAdmin, "set_group_offsets", r"deleted|ends at"),
        (shutil, "rmtree", r"a reset of .* was begun"),
        (ClusterAdmin, "delete_group", r"a reset of .* was begun"),
    ],
    ids=["after the topics", "before the state", "before the group"],
)
def test_a_worker_that_starts_in_between_is_refused_and_a_second_reset_goes_on(
    topics: Topics,
    new_worker: Callable[..., Worker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    holder: Any,
    step: str,
    refusal: str,
) -> None:
    worker = new_worker()
    worker.start()
    topics.load(100)
    topics.wait_for_counts(100)
    worker.finish()
    state = tmp_path / "state"
    options = ["--yes", "--bootstrap-servers", topics.servers, "--state-dir", str(state)]
    arguments = ["group", "reset", topics.application, *options]

    def run_app() -> Any:
        return build(
            topics.application,
            topics.source,
            topics.target,
            kind="count",
            bootstrap_servers=topics.servers,
            state_dir=state,
        ).start()

    with monkeypatch.context() as patch:
        patch.setattr(holder, step, fail)
        failed = CliRunner().invoke(cli, arguments)
    assert failed.exit_code != 0, failed.output
    with pytest.raises(StreamsError, match=refusal), run_app() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
    again = CliRunner().invoke(cli, arguments)
    assert again.exit_code == 0, again.output
    before = len(list(topics.committed()))
    with run_app() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(1)
        topics.wait_for_counts(101)
    assert topics.counts() == topics.truth
    assert len(list(topics.committed())) > before, "the inputs were read anew"


def test_leftovers_are_deleted_unless_another_application_may_have_them(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, module = topics.application, topics.application.replace("-", "_")
    text = PROGRAM.format(name=name, source=topics.source, target=topics.target)
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    state = tmp_path / "state"
    (state / f"{name}-weekly").mkdir(parents=True)
    own, former = f"{name}-counts-changelog", f"{name}-former-changelog"
    alike = [f"{name}-monthly-a-changelog", f"{name}-monthly-b-repartition"]
    grouped, kept_on_disk = f"{name}-daily-n-changelog", f"{name}-weekly-n-changelog"
    longer, kept = f"{name}-counts-counts-changelog", f"{name}-two-words-changelog"
    topics.create(own, former, *alike, grouped, kept_on_disk, longer, kept)
    consumer = Consumer({"bootstrap.servers": topics.servers, "group.id": f"{name}-daily"})
    consumer.commit(offsets=[TopicPartition(topics.source, 0, 0)], asynchronous=False)
    consumer.close()

    said: list[str] = []

    def list_deleted(*options: str) -> list[str]:
        servers = ["--bootstrap-servers", topics.servers, "--state-dir", str(state)]
        arguments = ["group", "reset", f"{module}:app", "--json", "--dry-run", *servers, *options]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        said.append(done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return [row["what"] for row in rows if row["change"] == "delete topic"]

    assert list_deleted() == [own]
    assert list_deleted("--leftovers") == [own, former]
    assert f"may belong to another application, and stays: {longer} (" in said[-1]
    assert f"millrace topics delete {longer} --bootstrap-servers {topics.servers}" in said[-1]
    # A store of this application's that was kept in this very topic proves that it is its own.
    admin = connect_clients(load_command_config(bootstrap_servers=topics.servers)).admin
    for topic, expected in ((longer, [own, former]), (kept, [own, former, kept])):
        disk = RocksDisk(state / name / "0_0" / "two-words")
        disk.write_changes({}, StoreCheckpoint(1, admin.fetch_topic_ids([topic])[topic], 1))
        disk.close()
        assert list_deleted("--leftovers") == expected
