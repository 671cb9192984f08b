"""Test which broker a state directory finds: its own, however it was copied or cut off."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from state.locks import ProcessFileLock
from streams import App, serdes
from streams.errors import ConfigError
from streams.processes import broker_start, embedded
from streams.processes.broker_start import is_broker_alive
from streams.processes.embedded import (
    ensure_embedded_broker,
    find_embedded_broker_data,
    find_or_start_bootstrap_servers,
    refuse_application_of_broker_directory,
    require_embedded_broker,
    restart_embedded_broker,
)
from streams.settings.config import StreamsConfig, load_config
from tests.processes import HANG_LIMIT_S, HOST, free_ports, wait_until


def read_process_file(state: Path) -> list[str]:
    return (state / "broker" / "process").read_text().split()


def kill_broker(state: Path) -> None:
    os.kill(int(read_process_file(state)[1]), signal.SIGKILL)
    wait_until(lambda: not is_broker_alive(state / "broker"), what="the end of the broker")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """Provide a state directory; its embedded broker and its copy's are ended with the test."""
    yield tmp_path / "state"
    for name in ("state", "copy"):
        if (tmp_path / name / "broker" / "process").exists():
            kill_broker(tmp_path / name)


def list_topics(address: str) -> set[str]:
    client = AdminClient({"bootstrap.servers": address})
    return {name for name in client.list_topics(timeout=HANG_LIMIT_S).topics if name[0] != "_"}


def create_topic(address: str, name: str) -> None:
    client = AdminClient({"bootstrap.servers": address})
    for created in client.create_topics([NewTopic(name, 1, 1)]).values():
        created.result(HANG_LIMIT_S)


def test_a_copied_directory_has_a_broker_of_its_own_on_the_copied_data(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = ensure_embedded_broker(state)
    create_topic(address, "before")
    copy = state.with_name("copy")
    shutil.copytree(state, copy)
    with pytest.raises(ConfigError, match="no embedded broker runs"):
        require_embedded_broker(copy)
    copied = ensure_embedded_broker(copy)
    assert copied != address
    assert "is a copy of another directory" in caplog.text
    assert f"the broker there was at {address}, and is not this one's" in caplog.text
    create_topic(copied, "in-the-copy")
    assert list_topics(address) == {"before"}
    assert list_topics(copied) == {"before", "in-the-copy"}
    assert [ensure_embedded_broker(each) for each in (state, copy)] == [address, copied]
    require_embedded_broker(copy)


def test_the_data_of_a_broker_are_known_by_its_last_address(state: Path) -> None:
    address = ensure_embedded_broker(state)
    port = address.rpartition(":")[2]
    data = state.absolute() / "broker" / "data"
    assert find_embedded_broker_data(state, address) == data
    assert find_embedded_broker_data(state, f"kafka:1,localhost:{port}") == data
    assert find_embedded_broker_data(state, f"kafka:{port},127.0.0.1:1") is None
    assert find_embedded_broker_data(state / "other", address) is None


def test_the_process_id_is_the_last_line_of_the_file_for_scripts(state: Path) -> None:
    address = ensure_embedded_broker(state)
    named, pid = (state / "broker" / "process").read_text().splitlines()
    assert named == address
    assert f"{state}/broker/data" in Path(f"/proc/{pid}/cmdline").read_text()


def test_the_broker_answers_prometheus_at_the_port_of_the_settings(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [port] = free_ports(1)
    config = load_config(
        None,
        {"bootstrap_servers": "embedded", "state_dir": state, "broker_metrics_port": port},
    )
    address = ensure_embedded_broker(state)
    assert find_or_start_bootstrap_servers(config) == address
    assert f"broker_metrics_port is {port}, but the embedded broker was started" in caplog.text
    kill_broker(state)
    assert restart_embedded_broker(state, address) is not None, "whoever starts it"
    caplog.clear()
    assert find_or_start_bootstrap_servers(config) == address
    assert caplog.text == ""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as figures:
        assert b"millrace_broker_info" in figures.read()


def test_the_broker_of_a_copy_does_not_take_the_port_of_the_original(state: Path) -> None:
    """Test the moment at which the original's broker is gone and its clients look for it."""
    address = ensure_embedded_broker(state)
    copy = state.with_name("copy")
    shutil.copytree(state, copy)
    kill_broker(state)
    assert ensure_embedded_broker(copy) != address
    assert restart_embedded_broker(state, address) is not None
    assert ensure_embedded_broker(state) == address


@pytest.mark.parametrize("content", ["", "\n", "127.0.0.1", "127.0.0.1:9", "127.0.0.1:x\n1\n"])
def test_a_process_file_that_was_cut_off_is_as_none(content: str, state: Path) -> None:
    ensure_embedded_broker(state)
    kill_broker(state)
    (state / "broker" / "process").write_text(content)
    with pytest.raises(ConfigError, match="no embedded broker runs"):
        require_embedded_broker(state)
    address = ensure_embedded_broker(state)
    assert read_process_file(state)[0] == address
    assert list_topics(address) == set()


def test_another_process_at_the_address_is_not_taken_for_the_broker(state: Path) -> None:
    (port,) = free_ports(1)
    (state / "broker" / "data").mkdir(parents=True)
    (state / "broker" / "process").write_text(f"{HOST}:{port}\n1\n")
    with socket.create_server((HOST, port)):
        with pytest.raises(ConfigError, match="no embedded broker runs"):
            require_embedded_broker(state)
        assert ensure_embedded_broker(state) != f"{HOST}:{port}"


def test_a_broker_that_does_not_answer_yet_is_waited_for_while_it_lives(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_start, "PROGRESS_INTERVAL_S", 0.0)
    (port,) = free_ports(1)
    data = state / "broker" / "data"
    data.mkdir(parents=True)
    (state / "broker" / "process").write_text(f"{HOST}:{port}\n1\n")
    broker = ProcessFileLock(data / ".lock")
    with ThreadPoolExecutor() as pool:
        found = pool.submit(ensure_embedded_broker, state)
        wait_until(lambda: "does not answer yet" in caplog.text, what="a word of the wait")
        assert not found.done()
        with socket.create_server((HOST, port)):
            assert found.result(HANG_LIMIT_S) == f"{HOST}:{port}"
        found = pool.submit(ensure_embedded_broker, state)
        broker.release()
        assert found.result(HANG_LIMIT_S)
        assert read_process_file(state)[1] != "1"


@pytest.mark.parametrize("content", ["", f"{HOST}:9\n1\n1:2\n"], ids=["empty", "another mount"])
def test_a_broker_that_lives_at_an_unknown_address_is_named_after_a_while(
    content: str, state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded, "ADDRESS_WAIT_S", 0.3)
    data = state / "broker" / "data"
    data.mkdir(parents=True)
    (state / "broker" / "process").write_text(content)
    broker = ProcessFileLock(data / ".lock")
    with pytest.raises(ConfigError, match="its address is not known") as raised:
        ensure_embedded_broker(state)
    assert f"`fuser {data / '.lock'}` shows its process id" in str(raised.value)
    assert caplog.text.count("is a copy of another directory, or mounted otherwise") == bool(
        content
    )
    broker.release()
    assert ensure_embedded_broker(state) == read_process_file(state)[0]


def test_a_worker_that_knows_the_address_goes_on_though_the_file_is_lost(state: Path) -> None:
    address = ensure_embedded_broker(state)
    file = state / "broker" / "process"
    content = file.read_text()
    file.write_text("")
    assert restart_embedded_broker(state, address) is None
    file.write_text(content)


def test_a_stop_of_the_worker_ends_the_wait(state: Path) -> None:
    ensure_embedded_broker(state)
    address = read_process_file(state)[0]
    kill_broker(state)
    with pytest.raises(ConfigError, match="did not start"):
        restart_embedded_broker(state, address, lambda: True)


def test_an_application_whose_directory_is_the_brokers_is_refused(tmp_path: Path) -> None:
    config = StreamsConfig(state_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"'broker': '.*/broker' is the directory of the embedde"):
        refuse_application_of_broker_directory(config, "broker")
    app = App("broker", state_dir=tmp_path)
    app.stream("in", key=serdes.string, value=serdes.string).to("out")
    with pytest.raises(ConfigError, match="is the directory of the embedded broker"):
        app.start()
    assert not (tmp_path / "broker").exists()
    refuse_application_of_broker_directory(config, "brokers")
    elsewhere = StreamsConfig(state_dir=tmp_path, bootstrap_servers="a:1")
    refuse_application_of_broker_directory(elsewhere, "broker")
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "process").touch()
    with pytest.raises(ConfigError, match="give another id"):
        refuse_application_of_broker_directory(elsewhere, "broker")
