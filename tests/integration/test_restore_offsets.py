"""Test that offsets which are gone are committed again where the ledger or a person says which."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from streams import StreamsError
from streams.app import import_app
from streams.commands.root import cli
from streams.processes.running import RunningApp
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.test_lost_offsets import delete_group, set_offsets
from tests.processes import HANG_LIMIT_S

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

PROGRAM = """
from tests.integration.worker import build

app = build("{name}", "{source}", "{target}", kind="{kind}", ledger={ledger})
"""


class Restored:
    """Holds an application in a module of its own, and runs it and the commands on it."""

    def __init__(
        self, topics: Topics, path: Path, *, ledger: bool = False, kind: str = "count"
    ) -> None:
        self._topics = topics
        self._state = path / "state"
        module = topics.application.replace("-", "_")
        (path / f"{module}.py").write_text(
            PROGRAM.format(
                name=topics.application,
                source=topics.source,
                target=topics.target,
                kind=kind,
                ledger=ledger,
            )
        )
        self._program = f"{module}:app"
        self._app = import_app(self._program)
        self._app.configure(None, bootstrap_servers=topics.servers, state_dir=self._state)

    def count(self, records: int) -> None:
        """Load so many records more, and run the application until they are counted."""
        with self.start() as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
            self._topics.load(records)
            self._topics.wait_for_counts(self._topics.loaded)
        assert self._topics.counts() == self._topics.truth

    def start(self) -> RunningApp:
        return self._app.start()

    def expect_refusal(self, text: str = "restore-offsets") -> str:
        """Start the application, and return the message of its refusal."""
        with pytest.raises(StreamsError, match=text) as refused, self.start() as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
        return str(refused.value)

    def paste(self, message: str, option: str, *more: str) -> Result:
        """Run the command with an option that a message offers, as it stands there."""
        (command,) = (each for each in re.findall("`(.*?)`", message) if option in each)
        return CliRunner().invoke(cli, [*shlex.split(command)[1:], *more])

    def restore(self, *options: str) -> Result:
        servers = ["--bootstrap-servers", self._topics.servers, "--state-dir", str(self._state)]
        return CliRunner().invoke(
            cli, ["group", "restore-offsets", self._program, *servers, *options]
        )


@pytest.fixture
def create(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Restored]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda **how: Restored(topics, tmp_path, **how)


def test_the_ledger_proves_the_offsets_of_a_group_that_is_gone(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=True)
    restored.count(100)
    assert "has an offset that accounts for it" in restored.restore("--dry-run").stderr
    delete_group(topics)
    restored.expect_refusal()
    assert "nothing was changed" in restored.restore("--dry-run").stderr
    restored.expect_refusal()
    done = restored.restore("--yes")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("by the ledger") == PARTITIONS
    restored.count(20)


def test_the_inputs_of_tasks_without_stores_are_restored_with_the_others_or_none_is(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=True, kind="words")
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(100)
        topics.wait_for_counts(200)
    (between,) = (each for each in topics.list_names() if each.endswith("-repartition"))
    delete_group(topics)
    done = restored.restore("--yes")
    assert done.exit_code == 0, done.output
    assert "its workers may start" in done.stderr
    assert {topics.source, between} == set(re.findall(r"^ *(\S+)\[\d+\]", done.stdout, re.M))
    assert "has an offset that accounts for it" in restored.restore("--yes").stderr
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(50)
        topics.wait_for_counts(300)
    assert topics.counts().total() == 300
    producer = Producer({"bootstrap.servers": topics.servers})
    producer.produce(between, b"value", b"value", partition=0)  # by nobody that the ledger knows
    assert producer.flush(HANG_LIMIT_S) == 0
    delete_group(topics)
    refused = restored.restore("--yes")
    assert refused.exit_code == 2
    assert (
        f"nothing proves an offset for {topics.source}[0], {topics.source}[1], " in refused.stderr
    )


def test_the_ledger_proves_no_offset_of_a_topic_that_was_made_again(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=True)
    restored.count(100)
    topics.make_again(topics.source)
    topics.load(200)
    delete_group(topics)
    refused = restored.restore("--yes")
    assert refused.exit_code == 2
    assert "is of another topic of the same name" in refused.output
    restored.expect_refusal()


def test_an_input_made_again_goes_on_by_the_command_that_the_refusal_offers(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create()
    restored.count(100)
    topics.make_again(topics.source)
    refusal = restored.expect_refusal(
        "all of its offsets have expired.*was deleted and created again"
    )
    done = restored.paste(refusal, "--made-again", "--yes")
    assert done.exit_code == 0, done.output
    restored.count(20)


def test_the_ledger_tells_that_an_input_is_not_another_topic(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=True)
    restored.count(100)
    delete_group(topics)
    refused = restored.restore("--made-again", topics.source, "--yes")
    assert refused.exit_code == 2
    assert "the ledger, names the topic that is there now" in refused.stderr


def test_a_repartition_topic_made_again_is_accepted_with_its_loss_only(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(kind="words")
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(100)
        topics.wait_for_counts(200)
    (between,) = (each for each in topics.list_names() if each.endswith("-repartition"))
    topics.make_again(between)
    refusal = restored.expect_refusal("Records between two steps of this application are lost")
    set_offsets(topics, 0, between)
    for options in (["--accept"], ["--made-again", between]):
        refused = restored.restore("--yes", *options)
        assert refused.exit_code == 2
        assert "those that were not processed are lost" in refused.stderr
        assert "add --accept-loss" in refused.stderr
    done = restored.paste(refusal, "--accept-loss", "--yes")
    assert done.exit_code == 0, done.output
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.load(50)
        topics.wait_for_counts(300)


def test_a_record_that_the_ledger_does_not_know_is_no_proof(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=True)
    restored.count(100)
    changelog = f"{topics.application}-counts-changelog"
    producer = Producer({"bootstrap.servers": topics.servers})
    producer.produce(changelog, b"\0" * 8, b"key-0", partition=0)
    assert producer.flush(HANG_LIMIT_S) == 0
    delete_group(topics)
    refused = restored.restore("--yes")
    assert refused.exit_code == 2
    assert f"nothing proves an offset for {topics.source}[0], so" in refused.stderr


def test_without_a_ledger_nothing_is_guessed_and_what_a_person_sets_is_accepted(
    topics: Topics, create: Callable[..., Restored]
) -> None:
    restored = create(ledger=False)
    restored.count(100)
    delete_group(topics)
    for options in (["--yes"], ["--yes", "--accept"]):
        refused = restored.restore(*options)
        assert refused.exit_code == 2
        assert "nothing proves an offset" in refused.stderr
        assert "millrace group reset" in refused.stderr
    set_offsets(topics, 0)
    restored.expect_refusal()
    assert restored.restore("--yes").exit_code == 2
    accepted = restored.restore("--yes", "--accept")
    assert accepted.exit_code == 0, accepted.output
    topics.truth.update(dict(topics.truth))  # each is counted again, as was accepted
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.wait_for_counts(200)
    assert topics.counts() == topics.truth


def test_offsets_are_not_restored_while_a_worker_runs(create: Callable[..., Restored]) -> None:
    restored = create(ledger=False)
    with restored.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        refused: Any = restored.restore("--yes")
    assert refused.exit_code == 2
    assert "has 1 member (" in refused.stderr
