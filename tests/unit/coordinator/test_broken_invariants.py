"""A broker whose state and log have parted stops, whoever finds out: a request or a timer."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import coordinator.__main__ as command
from coordinator import EmbeddedBroker
from coordinator.shard.shard import BrokenInvariant
from coordinator.wire.connection import Disconnect
from tests.unit.coordinator.api.client import Client, run

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
        monkeypatch.setattr(shard, "execute", lambda decision: part())
        [time_is_up] = client.scheduler.pending(TIMEOUT_MS)
        client.clock.time_ms += TIMEOUT_MS
        time_is_up()
        assert isinstance(client.broker.failure, BrokenInvariant)
        await client.broker.asked_to_stop()
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


def test_whoever_embeds_the_broker_is_told(tmp_path: Path) -> None:
    def embed() -> None:
        with EmbeddedBroker(tmp_path) as embedded:
            broker, loop = embedded._broker, embedded._loop
            assert broker is not None
            assert loop is not None
            stopped = threading.Event()
            broker._closing.callback(stopped.set)
            loop.call_soon_threadsafe(broker.scheduler.call_later, 0, part)
            assert stopped.wait(10)

    with pytest.raises(BrokenInvariant, match="have parted"):
        embed()


def test_a_broker_process_says_so_in_one_line_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "serve", lambda config, listening, faults: part())
    assert command.main(["--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "error: the broker stopped to protect its data: state and log have parted\n"
    )
