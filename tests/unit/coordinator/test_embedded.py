from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator import EmbeddedBroker
from coordinator.__main__ import main
from coordinator.clock import ShiftedClock
from coordinator.config import WrongSetting
from coordinator.log.data_directory import UnusableDataDirectory
from tests.processes import HANG_LIMIT_S, wait_until


def roundtrip(bootstrap_servers: str, value: bytes) -> tuple[int, bytes | None]:
    """Produce a record to lines-3 and read the last one back; return its offset and value."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce("lines", value, partition=3)
    assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition("lines", 3), timeout=HANG_LIMIT_S)
        consumer.assign([TopicPartition("lines", 3, end - 1)])
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        offset = message.offset()
        assert offset is not None
        return offset, message.value()
    finally:
        consumer.close()


def test_records_survive_the_broker_in_its_data_directory(tmp_path: Path) -> None:
    for offset, value in enumerate((b"first", b"second")):
        with EmbeddedBroker(tmp_path, topics={"lines": 4}) as broker:
            assert roundtrip(broker.bootstrap_servers, value) == (offset, value)


def test_settings_are_kafkas(tmp_path: Path) -> None:
    with (
        pytest.raises(WrongSetting, match=r"did you mean num\.partitions"),
        EmbeddedBroker(tmp_path, settings={"num.partition": 3}),
    ):
        pass


def test_one_directory_has_one_broker_and_is_free_after_it(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(tmp_path),
        pytest.raises(UnusableDataDirectory),
        EmbeddedBroker(tmp_path),
    ):
        pass
    with EmbeddedBroker(tmp_path):
        pass


def test_the_address_is_known_only_while_it_runs() -> None:
    broker = EmbeddedBroker()
    with pytest.raises(RuntimeError, match="isn't running"):
        print(broker.bootstrap_servers)


def test_importing_the_package_starts_nothing_heavy() -> None:
    code = (
        "import sys, coordinator, coordinator.assignors\n"
        "print('kio' in sys.modules, 'uvloop' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_the_broker_process_imports_nothing_that_it_has_no_use_for_yet() -> None:
    rare = ("hypothesis", "cramjam", "prometheus_client", "re2", "typer", "rich")
    code = (
        "import sys, coordinator.__main__\n"
        f"print([name for name in {rare} if sys.modules.get(name)], 'kio' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[] True"


def test_what_a_person_can_put_right_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedBroker(tmp_path / "used") as running:
        port = running.bootstrap_servers.rpartition(":")[2]
        (tmp_path / "file").write_text("")
        cases = {
            ("--data", "d", "--port", port): f"can't listen on 127.0.0.1:{port}",
            ("--data", "used"): "used by another broker",
            ("--data", "file"): "can't write to the data directory",
            ("--data", "d", "--set", "num.partition=1"): "unknown setting num.partition",
            ("--data", "d", "--set", "num.partitions"): "write it as name=value",
            ("--data", "d", "--port", "99999"): "port=99999: must be from 0 to 65535",
            ("--data", "d", "--port", "-1"): "port=-1: must be from 0 to 65535",
            ("--data", "d", "--port", "x"): "argument --port: invalid int value: 'x'",
            ("--data", "d", "--sets", "a=1"): "unrecognized arguments: --sets a=1",
            (): "the following arguments are required: --data",
        }
        for arguments, message in cases.items():
            options = [*arguments[:1], *(str(tmp_path / name) for name in arguments[1:2])]
            assert main([*options, *arguments[2:]]) == 2, arguments
            out, err = capsys.readouterr()
            assert err.startswith("millrace: ")
            assert message in err
            assert err.count("\n") == 1
            assert out == ""


def test_starting_a_broker_imports_no_typer_and_no_pydantic() -> None:
    code = (
        "import sys, coordinator.__main__\nprint(*({'typer', 'rich', 'pydantic'} & {*sys.modules}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_a_shifted_clock_lets_records_expire_while_the_broker_runs(tmp_path: Path) -> None:
    clock = ShiftedClock()
    settings = {"log.retention.check.interval.ms": 20}
    with EmbeddedBroker(tmp_path, topics={"lines": 4}, settings=settings, clock=clock) as broker:
        roundtrip(broker.bootstrap_servers, b"soon a week old")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        clock.shift_ms = 8 * 86_400_000
        wait_until(
            lambda: consumer.get_watermark_offsets(TopicPartition("lines", 3)) == (1, 1),
            what="the record expires",
        )
        consumer.close()
