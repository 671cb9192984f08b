"""Test that a mistake gives one clear message with the value and what to do.

The exit status is 2 and there is no traceback.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers import Broker, EmbeddedProcess
from tests.processes import HANG_LIMIT_S

pytestmark = pytest.mark.sampled(14, by="test")

APP = """
from streams import App, serdes
app = App("{name}", commit_interval_ms=50)
stream = app.stream("{name}-in", key=serdes.string, value=serdes.{value}, name="read")
{steps}
"""
COPY = 'stream.to("{name}-out", name="write")'


def run(
    arguments: Sequence[str], directory: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), **environment},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )


def check(result: subprocess.CompletedProcess[str], *parts: str, status: int = 2) -> None:
    assert result.returncode == status, result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    for part in parts:
        assert part in " ".join(result.stderr.split()), result.stderr


class Program:
    """Represents an application in a file of its own."""

    def __init__(self, directory: Path, name: str, servers: str) -> None:
        self.directory = directory
        self.name = name
        self._servers = servers

    def write(self, steps: str = COPY, value: str = "string") -> None:
        text = APP.format(name=self.name, value=value, steps=steps.format(name=self.name))
        (self.directory / "program.py").write_text(text)

    def topics(self, *suffixes: str, partitions: int = 1) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        for answer in admin.create_topics(
            [NewTopic(f"{self.name}-{suffix}", partitions, 1) for suffix in suffixes]
        ).values():
            answer.result(HANG_LIMIT_S)

    def run(self, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
        arguments = ["streams", "run", "program:app", "--state-dir", str(self.directory / "state")]
        if "--bootstrap-servers" not in more:
            arguments += ["--bootstrap-servers", self._servers]
        return run([*arguments, *more], self.directory, **environment)


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedProcess]:
    made = EmbeddedProcess()
    made.start()
    yield made
    made.close()


@pytest.fixture
def program(embedded: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Program:
    name = f"app-{abs(hash(request.node.name))}"
    made = Program(tmp_path, name, embedded.bootstrap_servers)
    made.write()
    return made


def produce(servers: str, topic: str, key: bytes | None, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value, key)
    assert producer.flush(HANG_LIMIT_S) == 0


def test_an_input_topic_that_does_not_exist(program: Program) -> None:
    program.topics("out")
    check(program.run(), f"topic '{program.name}-in' does not exist", "create it")


def test_an_output_topic_that_does_not_exist(program: Program) -> None:
    program.topics("in")
    check(program.run(), f"topic '{program.name}-out' does not exist", "create it")


def test_an_error_that_all_workers_meet_is_told_once(program: Program) -> None:
    program.topics("out")
    result = program.run("--workers", "3")
    check(result, f"topic '{program.name}-in' does not exist")
    assert result.stderr.count("does not exist") == 1, result.stderr


def test_joined_topics_with_different_numbers_of_partitions(program: Program) -> None:
    program.write('other = app.stream("{name}-other", key=serdes.string, value=serdes.string)\n'
                  "stream.join(other, lambda one, two: one, within=5)")  # fmt: skip
    program.topics("in", "out", partitions=2)
    program.topics("other", partitions=3)
    uneven = f"'{program.name}-in' has 2, '{program.name}-other' has 3"
    check(program.run(), uneven, "repartition(partitions=...)")


def test_a_key_that_a_serde_cannot_take(program: Program, embedded: Broker) -> None:
    program.write('stream.map(lambda k, v: (7, v), key=serdes.string, value=serdes.string)'
                  '.to("{name}-out", name="write")')  # fmt: skip
    program.topics("in", "out")
    produce(embedded.bootstrap_servers, f"{program.name}-in", b"k", b"v")
    check(program.run(), "step 'write'", "key=string", "key <int>", f"{program.name}-in[0]@0")


def test_a_value_that_a_serde_cannot_read(program: Program, embedded: Broker) -> None:
    program.write(value="int64")
    program.topics("in", "out")
    produce(embedded.bootstrap_servers, f"{program.name}-in", b"k", b"not eight")
    check(program.run(), "step 'read'", "value=int64", "needs 8 bytes, got 9", "[0]@0")


def test_a_users_function_that_fails_names_the_record_and_the_line(
    program: Program, embedded: Broker
) -> None:
    program.write('stream.map_values(lambda v: 1 // 0).to("{name}-out", name="write")')
    program.topics("in", "out")
    produce(embedded.bootstrap_servers, f"{program.name}-in", b"k", b"v")
    check(program.run(), f"{program.name}-in[0]@0", "ZeroDivisionError", "program.py:5")


def test_a_dead_letter_topic_that_does_not_exist(program: Program) -> None:
    program.topics("in", "out")
    result = program.run("--set", f"processing_handler=dead_letter:{program.name}-dead")
    check(result, f"dead-letter topic '{program.name}-dead' does not exist", "create it")


def test_a_record_that_is_too_large(program: Program, embedded: Broker) -> None:
    program.write('stream.map_values(lambda v: v * 2_000_000).to("{name}-out", name="write")')
    program.topics("in", "out")
    produce(embedded.bootstrap_servers, f"{program.name}-in", b"k", b"v")
    check(program.run(), "step 'write'", f"{program.name}-in[0]@0", f"topic '{program.name}-out'",
          "MSG_SIZE_TOO_LARGE")  # fmt: skip


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
wide = stream.map_values(lambda v: v * 100_000)
wide.group_by_key().reduce(lambda old, new: new, store="latest").to_stream().to("{name}-out")
"""


def test_a_full_disk_is_one_warning_with_the_number_of_stores_and_one_error(
    program: Program, embedded: Broker
) -> None:
    # A file of the worker may have 1 MiB; the broker is another process. That is what RocksDB says
    # of a full disk, but for the words.
    program.write(FULL_DISK)
    program.topics("in", "out", partitions=8)
    for number in range(100):
        produce(embedded.bootstrap_servers, f"{program.name}-in", b"%d" % number, b"12345")
    result = program.run()
    check(result, "store 'latest' in", "File too large", "make room and start again")
    warnings = [line for line in result.stderr.splitlines() if " WARNING state." in line]
    assert len(warnings) == 1, result.stderr
    assert "8 stores are closed without a flush, as a disk is full" in warnings[0]


def test_a_broker_that_is_not_there(program: Program) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        result = program.run("--bootstrap-servers", address)
    why = f"no Kafka broker answers at bootstrap_servers='{address}'"
    check(result, why, "check the address", status=75)


def test_a_broker_whose_name_does_not_exist(program: Program) -> None:
    result = program.run("--bootstrap-servers", "kafka.invalid:9092")
    assert result.returncode in (2, 75), result.stderr  # 75 where names can't be looked up at all
    if result.returncode == 2:
        check(result, "no such host: check the address")


def test_a_misspelt_setting(program: Program) -> None:
    result = program.run("--set", "comit_interval_ms=5")
    check(result, "unknown setting comit_interval_ms", "did you mean 'commit_interval_ms'")


def test_a_setting_with_a_value_that_is_none(program: Program) -> None:
    result = program.run("--set", "commit_interval_ms=soon")
    check(result, "setting 'commit_interval_ms' can't be 'soon'")
    check(program.run("--set", "commit_interval_ms"), "is not NAME=VALUE")


def test_a_misspelt_environment_variable_is_pointed_out_beside_what_ends_the_program(
    program: Program,
) -> None:
    result = program.run("--set", "commit_interval_ms=soon", MILLRACE_STAT_DIR="x")
    assert "MILLRACE_STAT_DIR; did you mean 'MILLRACE_STATE_DIR'" in result.stderr


def test_an_unwritable_state_directory(program: Program) -> None:
    program.topics("in", "out")
    (program.directory / "file").touch()
    unwritable = str(program.directory / "file" / "state")
    check(program.run("--state-dir", unwritable), unwritable, "can't be written", "--state-dir")
    embedded_too = program.run("--state-dir", unwritable, "--bootstrap-servers", "embedded")
    check(embedded_too, unwritable, "can't be written", "--state-dir")


def test_a_misspelt_client_setting(program: Program) -> None:
    program.topics("in", "out")
    for name, setting in {"CONSUMER": "fetch.min.bytez", "PRODUCER": "lingerr.ms"}.items():
        result = program.run(**{f"MILLRACE_{name}": f'{{"{setting}": 1}}'})
        check(result, f"{name.lower()} settings", setting)


def test_a_program_that_is_not_there(program: Program) -> None:
    for reference, message in {
        "nothing:app": "no module 'nothing'",
        "program:nothing": "module 'program' has no 'nothing'; it has the App 'app'",
        "program": "is not module:variable",
    }.items():
        check(run(["streams", "run", reference], program.directory), message)


def test_a_topology_that_cannot_be_built(program: Program) -> None:
    program.write('stream.map(lambda k, v: (v, k)).to("{name}-out", name="write")')
    check(program.run(), "step 'write' needs a key serde")


def test_a_port_that_is_in_use(embedded: Broker, tmp_path: Path) -> None:
    port = embedded.bootstrap_servers.rpartition(":")[2]
    for module in (["coordinator"], ["streams", "broker"]):
        check(run([*module, "--data", "data", "--port", port], tmp_path), port, "in use")


def test_a_data_directory_that_another_broker_has(
    embedded: EmbeddedProcess, tmp_path: Path
) -> None:
    directory = str(embedded.data_dir)
    check(run(["coordinator", "--data", directory, "--port", "0"], tmp_path), directory)


def test_a_broker_setting_that_does_not_exist(tmp_path: Path) -> None:
    arguments = ["coordinator", "--data", "data", "--port", "0", "--set", "num.partition=3"]
    check(run(arguments, tmp_path), "num.partition", "num.partitions")


def test_more_stores_than_an_offset_can_name_are_refused_before_anything_is_made(
    broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    program = Program(tmp_path, unique("many"), broker.bootstrap_servers)
    program.topics("in")
    program.write(
        "for number in range(256):\n    stream.group_by_key().count(store=f's{{number}}')\n"
    )
    check(
        program.run(),
        "sub-topology 0 has 256 stores (s0, s1, s2, s3, s4, ...)",
        "4112 bytes, and the brokers take 4096 (offset.metadata.max.bytes)",
        "split the sub-topology",
    )


def test_a_broker_that_takes_less_metadata_than_a_store_needs_is_named(tmp_path: Path) -> None:
    with closing(EmbeddedProcess({"offset.metadata.max.bytes": "20"})) as strict:
        strict.start()
        program = Program(tmp_path, "strict", strict.bootstrap_servers)
        program.topics("in")
        program.write("stream.group_by_key().count(store='counts')")
        check(program.run(), "sub-topology 0", "counts", "32 bytes, and the brokers take 20")
