"""Test that a broker whose state and log disagree stops, on a request or a timer."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import coordinator.__main__ as command
from coordinator import EmbeddedBroker
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.connection import Disconnect
from tests.processes import HANG_LIMIT_S
from tests.unit.coordinator.api.client import Client, run
from tests.unit.coordinator.groups.test_large_deletions import COUNT, commit, take_slice

TIMEOUT_MS = 1_234
API_VERSIONS = b"\0\x12\0\0\0\0\0\x4d\xff\xff"


def part() -> None:
    raise BrokenInvariant("state and log have parted")


def test_a_timer_that_finds_out_stops_the_broker_and_nothing_is_written_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.create("t")
        assert client.begin("t", timeout_ms=TIMEOUT_MS) == {"t": 0}
        topics = client.broker.topics
        ends = {p: p.end_offset for topic in topics for p in topic.partitions}
        [shard] = client.broker.coordinators.transactions.shards
        monkeypatch.setattr(shard, "execute_decision", lambda decision: part())
        [time_is_up] = client.scheduler.pending(TIMEOUT_MS)
        client.clock.time_ms += TIMEOUT_MS
        time_is_up()
        assert isinstance(client.broker.failure, BrokenInvariant)
        await client.broker.wait_for_stop_request()
        assert {p: p.end_offset for topic in topics for p in topic.partitions} == ends

    run(scenario())


def test_no_timer_rings_and_no_request_is_answered_until_it_has_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        rung: list[str] = []
        client.broker.scheduler.call_later(1, part)
        client.broker.scheduler.call_later(1, lambda: rung.append("later"))
        for callback in client.scheduler.pending(1):
            callback()
        assert rung == []
        with pytest.raises(Disconnect, match="the broker stops"):
            client.send_bytes(API_VERSIONS)

    run(scenario())


DELETIONS: list[tuple[int, int, dict[str, Any]]] = [
    (20, 5, {"topic_names": ["words"], "timeout": 1_000}),
    (42, 1, {"groups_names": ["large"]}),
]


def delete_and_go_away(
    client: Client, request: tuple[int, int, dict[str, Any]], error: Exception
) -> None:
    """Send a deletion that meets the error after its waiting client has disconnected."""

    def meet(records: object) -> None:
        raise error

    async def scenario() -> None:
        api_key, version, given = request
        client.create("words")
        commit(client, "large", "words", COUNT)
        answer = asyncio.ensure_future(client.ask_later(api_key, version, **given))
        await asyncio.sleep(0)
        answer.cancel()
        await asyncio.wait([answer])
        [shard] = client.broker.coordinators.groups.shards
        shard.log.append_in_batches = meet  # type: ignore[method-assign]
        assert take_slice(client)

    run(scenario())


@pytest.mark.parametrize("request_of_deletion", DELETIONS)
def test_a_deletion_that_nobody_waits_for_any_more_stops_the_broker(
    tmp_path: Path, request_of_deletion: tuple[int, int, dict[str, Any]]
) -> None:
    client = Client(tmp_path)
    delete_and_go_away(client, request_of_deletion, BrokenInvariant("have parted"))
    assert isinstance(client.broker.failure, BrokenInvariant)


@pytest.mark.parametrize("request_of_deletion", DELETIONS)
def test_an_error_of_a_deletion_that_nobody_waits_for_any_more_is_logged(
    tmp_path: Path,
    request_of_deletion: tuple[int, int, dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client(tmp_path)
    delete_and_go_away(client, request_of_deletion, ValueError("planned"))
    assert client.broker.failure is None
    assert "planned" in caplog.text


def test_whoever_embeds_the_broker_is_told(tmp_path: Path) -> None:
    def embed() -> None:
        with EmbeddedBroker(tmp_path) as embedded:
            broker, loop = embedded._broker, embedded._loop
            assert broker is not None
            assert loop is not None
            stopped = threading.Event()
            broker._close_stack.callback(stopped.set)
            loop.call_soon_threadsafe(broker.scheduler.call_later, 0, part)
            assert stopped.wait(HANG_LIMIT_S)

    with pytest.raises(BrokenInvariant, match="have parted"):
        embed()


def test_a_broker_process_says_so_in_one_line_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run_broker", lambda config, listening, faults, clock: part())
    assert command.main(["--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "millrace: the broker stopped to protect its data: state and log have parted\n"
    )
