"""Test which requests and calls a fault rule strikes, and with what effect."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from coordinator.__main__ import main
from coordinator.errors import Code
from coordinator.fault_file import read_faults
from coordinator.faults import DiskFault, Fault, Faults, RequestFault, WrongFault
from coordinator.log.faulty_disk import FaultyDisk
from coordinator.wire.connection import Disconnect
from tests.processes import HANG_LIMIT_S
from tests.unit.coordinator.api.client import Client, batch, run
from tests.unit.coordinator.disks import MemoryDisk

PRODUCE, INIT_PRODUCER_ID = 0, 22
LOG = Path("/data/words-3/00000000000000000000.log")


def struck(fault: RequestFault, requests: int, api_key: int = PRODUCE) -> list[int]:
    """Return the indexes of the requests that the fault strikes."""
    faults = Faults([fault])
    return [i for i in range(requests) if faults.match_request(api_key, "app")]


def test_a_rule_spares_the_first_then_strikes_each_so_many_times() -> None:
    assert struck(RequestFault("lose-request"), 3) == [0, 1, 2]
    assert struck(RequestFault("lose-request", times=2), 5) == [0, 1]
    assert struck(RequestFault("lose-request", after=2), 4) == [2, 3]
    assert struck(RequestFault("lose-request", every=3), 7) == [2, 5]
    assert struck(RequestFault("lose-request", after=1, every=2, times=2), 9) == [2, 4]


def test_a_rule_meets_one_api_by_name_or_key_and_one_client() -> None:
    for api in ("InitProducerId", "init_producer_id", INIT_PRODUCER_ID):
        fault = RequestFault("lose-request", api=api)
        assert struck(fault, 1, api_key=INIT_PRODUCER_ID) == [0]
        assert struck(fault, 1, api_key=PRODUCE) == []
    assert struck(RequestFault("lose-request", client_id="a*"), 1) == [0]
    assert struck(RequestFault("lose-request", client_id="b*"), 1) == []


def test_rules_count_what_they_meet_and_end_when_removed() -> None:
    faults = Faults()
    first = faults.add(RequestFault("cut-before", after=1, times=1))
    second = faults.add(RequestFault("cut-after"))
    actions = [fault and fault.action for fault in (faults.match_request(0, "") for _ in "123")]
    assert actions == ["cut-after", "cut-before", "cut-after"]
    assert (first.met, first.struck, second.met, second.struck) == (3, 1, 2, 2)
    second.remove()
    second.remove()
    assert faults.match_request(0, "") is None
    faults.clear()
    assert faults.request_rules == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RequestFault("lose"), "action=lose: must be one of cut-after, "),
        (lambda: RequestFault("cut-after", api="Prodce"), "api=Prodce"),
        (lambda: RequestFault("cut-after", api=999), "api=999"),
        (lambda: RequestFault("cut-after", every=0), "every=0"),
        (lambda: RequestFault("cut-after", after=-1), "after=-1"),
        (lambda: RequestFault("cut-after", times=True), "times=True"),
        (lambda: RequestFault("delay"), "delay_ms=0"),
        (lambda: RequestFault("error"), "error=0"),
        (lambda: RequestFault("error", error="OOPS"), "error=OOPS"),
        (lambda: DiskFault("full"), "bytes_left=None"),
        (lambda: DiskFault("fail-flush", bytes_left=1), "bytes_left=1"),
        (lambda: DiskFault("fail-flush", partition=1), "without a topic"),
        (lambda: DiskFault("full", bytes_left=1, every=2), "no every"),
    ],
)
def test_a_fault_that_cannot_be_says_which_part_of_it(make: Any, message: str) -> None:
    with pytest.raises(WrongFault, match=message):
        make()


# Requests


def init(client: Client) -> Any:
    return client.ask(INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=1_000)


async def later(client: Client) -> Any:
    given = {"transactional_id": None, "transaction_timeout": 1_000}
    return await client.ask_later(INIT_PRODUCER_ID, 4, **given)


def producer_ids_given(client: Client) -> int:
    """Return how many requests for a producer id took effect before the one made here."""
    return int(init(client).producer_id)


def test_an_error_code_is_the_answer_and_nothing_takes_effect(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.broker.faults.add(RequestFault("error", api="InitProducerId", error=14, times=1))
    answer = init(client)
    assert (answer.error_code, answer.producer_id) == (Code.COORDINATOR_LOAD_IN_PROGRESS, -1)
    assert producer_ids_given(client) == 0


@pytest.mark.parametrize(("action", "effects"), [("cut-before", 0), ("cut-after", 1)])
def test_a_connection_is_cut_before_or_after_the_request(
    tmp_path: Path, action: str, effects: int
) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.broker.faults.add(RequestFault(action, times=1))
        with pytest.raises(Disconnect):
            await later(client)
        assert producer_ids_given(client) == effects

    run(scenario())


@pytest.mark.parametrize(("action", "effects"), [("lose-request", 0), ("lose-answer", 1)])
def test_an_answer_never_comes(tmp_path: Path, action: str, effects: int) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.broker.faults.add(RequestFault(action, times=1))
        lost = asyncio.ensure_future(later(client))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not lost.done()
        assert producer_ids_given(client) == effects
        lost.cancel()

    run(scenario())


def test_a_delayed_answer_is_of_a_request_that_took_effect_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = Client(tmp_path)
        client.broker.faults.add(RequestFault("delay", delay_ms=1_234, times=1))
        late = asyncio.ensure_future(later(client))
        await asyncio.sleep(0)
        assert producer_ids_given(client) == 1
        [come] = client.scheduler.pending(1_234)
        assert not late.done()
        come()
        assert (await late).producer_id == 0

    run(scenario())


# Files


def disk(*given: Fault) -> tuple[FaultyDisk, Faults]:
    memory = MemoryDisk()
    memory.make_directory(LOG.parent)
    faults = Faults(given)
    return FaultyDisk(memory, faults), faults


def test_an_append_fails_where_the_rule_says_and_nothing_is_written() -> None:
    faulty, faults = disk(DiskFault("fail-append", topic="words", partition=3, times=1))
    file = faulty.open_file(LOG)
    with pytest.raises(OSError, match="EIO"):
        file.write(b"abc", 0)
    assert file.size() == 0
    file.write(b"abc", 0)
    for other in (
        DiskFault("fail-append", topic="words", partition=2),
        DiskFault("fail-append", topic="word"),
        DiskFault("fail-append", path="*.index"),
        DiskFault("fail-flush", path="lines-*/*.log"),
    ):
        faults.replace([other])
        file.write(b"abc", 3)
        file.flush()


def test_a_flush_fails() -> None:
    faulty, faults = disk()
    file = faulty.open_file(LOG)
    file.flush()
    rule = faults.add(DiskFault("fail-flush", path="words-*/*.log"))
    with pytest.raises(OSError, match="EIO"):
        file.flush()
    rule.remove()
    file.flush()
    assert rule.struck == 1


def test_a_full_disk_takes_what_fits_and_has_room_again() -> None:
    faulty, faults = disk(DiskFault("full", bytes_left=5, times=1))
    file = faulty.open_file(LOG)
    file.write(b"abc", 0)
    with pytest.raises(OSError, match="ENOSPC"):
        file.write(b"defg", 3)
    assert file.read(10, 0) == b"abcde"
    file.write(b"defg", 3)
    assert file.read(10, 0) == b"abcdefg"
    faults.replace([DiskFault("full", bytes_left=1)])
    with pytest.raises(OSError, match="ENOSPC"):
        faulty.replace_file(Path("/data/words-3/topics.json"), b"{}")


def test_without_rules_the_calls_are_the_files_own() -> None:
    faulty, faults = disk()
    file: Any = faulty.open_file(LOG)
    assert file.write.__self__ is not file
    rule = faults.add(DiskFault("fail-append", topic="lines"))
    assert file.write.__self__ is file
    rule.remove()
    assert file.write.__self__ is not file


def test_a_broker_refuses_what_it_cannot_write_and_goes_on(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.create("words")
    rule = client.broker.faults.add(DiskFault("fail-append", topic="words"))
    assert client.produce("words", batch(b"a")).error_code == Code.KAFKA_STORAGE_ERROR
    rule.remove()
    assert client.produce("words", batch(b"a")).base_offset == 0


# From a file


def test_a_file_is_toml_or_json(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "f.toml", tmp_path / "f.json"
    toml.write_text('[[request]]\naction="delay"\ndelay_ms=5\n[[disk]]\naction="fail-flush"\n')
    as_json.write_text(
        json.dumps(
            {
                "request": [{"action": "delay", "delay_ms": 5}],
                "disk": [{"action": "fail-flush"}],
            }
        )
    )
    wanted = [RequestFault("delay", delay_ms=5), DiskFault("fail-flush")]
    assert read_faults(toml) == wanted
    assert read_faults(as_json) == wanted


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x =", "faults.toml is no TOML"),
        ("[request]\naction = 'delay'", "request: must be lists called request and disk"),
        ("[[requests]]\naction = 'delay'", "requests: must be lists called request and disk"),
        ("[[request]]\napi = 'Fetch'", "request 1: no action"),
        ("[[disk]]\naction = 'fail-flush'\n[[disk]]\nfile = 'x'", "disk 2: file is not one of"),
        ("[[request]]\naction = ['delay']", r"request 1: action=\['delay'\]"),
    ],
)
def test_a_wrong_file_is_one_line_and_status_2(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(content)
    assert main(["--data", str(tmp_path / "data"), "--port", "0", "--faults", str(file)]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises(WrongFault, match=message):
        read_faults(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongFault, match=r"none\.toml can't be read: No such file"):
        read_faults(tmp_path / "none.toml")


def test_a_running_broker_reads_its_file_again_on_sighup(tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text("[[request]]\naction = 'cut-before'\napi = 'Metadata'\n")
    command = [sys.executable, "-m", "coordinator", "--data", str(tmp_path / "data")]
    command += ["--port", "0", "--faults", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().rpartition(" ")[2].strip()
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=1)
        file.write_text("")
        os.kill(process.pid, signal.SIGHUP)
        assert admin.list_topics(timeout=HANG_LIMIT_S).brokers
        process.terminate()
        assert process.wait(HANG_LIMIT_S) == 0
