"""Test that a thread renews its clients between commits, without a rebalance and without a loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import AuthenticationError, OutcomeUnknown
from tests.unit.streams.runtime.world import World, build_counting_topology

GUARANTEES = ["exactly_once_v2", "exactly_once", "at_least_once"]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_all_clients_are_renewed_once_and_every_record_counts_once(
    tmp_path: Path, guarantee: str
) -> None:
    security = CurrentSecurity(PLAINTEXT)
    world = World(build_counting_topology(), tmp_path, guarantee=guarantee, security=security)
    world.load("1", "2", "3")
    renewed: list[int] = []

    def go_on() -> bool:
        if world.consumed() and security.version == 0:
            world.load("4", "5")
            security.replace_security(PLAINTEXT)
            return False
        renewed[:] = [world.renewals]
        return world.consumed() and security.version == 1 and world.renewals == 1

    world.run_until(go_on)
    assert world.read_counts()["k"][-1] == 5
    assert renewed == [1]
    assert len(world.member.subscribed) == 1, "it has joined the group again"
    # The first producer could go on with a connection that will not be opened again.
    assert [producer.discarded for producer in world.producers] == [True] * 2
    assert world.loop.counters.recoveries == 0


def test_what_is_not_committed_is_committed_before_the_clients_are_renewed(tmp_path: Path) -> None:
    security = CurrentSecurity(PLAINTEXT)
    hour_ms = 3_600_000
    world = World(build_counting_topology(), tmp_path, commit_every_ms=hour_ms, security=security)

    def go_on() -> bool:
        if world.states and world.states[-1] == "RUNNING" and world.loop.counters.records == 0:
            world.load("1", "2")
            return False
        if world.loop.counters.records == 2 and security.version == 0:
            security.replace_security(PLAINTEXT)
        return world.renewals == 1

    world.run_until(go_on)
    assert world.consumed()
    assert world.clock.elapsed_s < hour_ms / 1000
    assert world.loop.counters.records == 2, "records were processed twice"


def test_a_renewal_that_fails_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Test one that fails where the restorer runs it, on its own thread as in a worker."""
    caplog.set_level("INFO")
    security = CurrentSecurity(PLAINTEXT)
    world = World(build_counting_topology(), tmp_path, security=security)
    raised: list[Exception] = []

    def run_elsewhere(action: Callable[[], None]) -> None:
        try:
            action()
        except OutcomeUnknown as error:
            raised.append(error)
            world.restorer.reader.restored.add_failure(error)

    monkeypatch.setattr(world.restorer, "run_between_batches", run_elsewhere)
    world.load("1")
    world.turn()
    world.fail_renewals = 1
    security.replace_security(PLAINTEXT)
    world.load("2")
    world.turn(1)
    assert len(raised) == 1
    assert "goes on with new connections" not in caplog.text
    world.run_until(lambda: world.renewals == 1 and world.consumed())
    assert "goes on with new connections" in caplog.text
    assert world.read_counts()["k"][-1] == 2


def test_a_refusal_ends_the_thread_without_a_commit(tmp_path: Path) -> None:
    security = CurrentSecurity(PLAINTEXT)
    world = World(build_counting_topology(), tmp_path, security=security)
    world.load("1")
    security.note_refusal("the broker refuses the credentials of user 'a'")
    with pytest.raises(AuthenticationError, match="user 'a'"):
        world.run_until(lambda: False)
    assert world.read_counts() == {}
    security.note_refusal("")
    security.require_accepted()
