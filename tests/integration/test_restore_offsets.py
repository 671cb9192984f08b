"""Test that offsets which are gone are committed again where the ledger or a person says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from streams import App, StreamsError
from streams.commands.root import cli
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.integration.test_lost_offsets import delete_group, set_offsets
from tests.integration.worker import build
from tests.processes import HANG_LIMIT_S

pytestmark = [IN_CI, pytest.mark.sampled(1, by="broker")]

PROGRAM = """
from tests.integration.worker import build

app = build("{name}", "{source}", "{target}", kind="count", ledger={ledger})
"""


class Restored:
    """Holds an application in a module of its own, and runs it and the commands on it."""

    def __init__(self, topics: Topics, path: Path, *, ledger: bool) -> None:
        self._topics = topics
        self._state = path / "state"
        self._ledger = ledger
        module = topics.application.replace("-", "_")
        (path / f"{module}.py").write_text(
            PROGRAM.format(
                name=topics.application, source=topics.source, target=topics.target, ledger=ledger
            )
        )
        self._program = f"{module}:app"

    def build_app(self) -> App:
        return build(
            self._topics.application,
            self._topics.source,
            self._topics.target,
            kind="count",
            bootstrap_servers=self._topics.servers,
            state_dir=self._state,
            ledger=self._ledger,
        )

    def count(self, records: int) -> None:
        """Load so many records more, and run the application until they are counted."""
        with self.build_app().start() as running:
            running.wait_for("RUNNING", HANG_LIMIT_S)
            self._topics.load(records)
            self._topics.wait_for_counts(self._topics.loaded)
        assert self._topics.counts() == self._topics.truth

    def expect_refusal(self) -> None:
        with (
            pytest.raises(StreamsError, match="restore-offsets"),
            self.build_app().start() as running,
        ):
            running.wait_for("RUNNING", HANG_LIMIT_S)

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
    with restored.build_app().start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        topics.wait_for_counts(200)
    assert topics.counts() == topics.truth


def test_offsets_are_not_restored_while_a_worker_runs(create: Callable[..., Restored]) -> None:
    restored = create(ledger=False)
    with restored.build_app().start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
        refused: Any = restored.restore("--yes")
    assert refused.exit_code == 2
    assert "has 1 member (" in refused.stderr
