"""Run a workload in a process of its own, watch it from outside, and check what it has written."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from benchmarks.broker_rivals import create_topic
from benchmarks.figures import cpu_s
from benchmarks.peers.compiled import compile_peers
from benchmarks.peers.expected import Expected, find_difference
from benchmarks.peers.inputs import Feed
from benchmarks.peers.samples import (
    PeerFigures,
    Sample,
    VoidRun,
    compute_figures,
    has_settled,
)
from benchmarks.peers.workloads import (
    CACHE_MAX_BYTES,
    CHANGELOG_SUFFIX,
    COMMIT_INTERVAL_MS,
    EXACTLY_ONCE,
    KAFKA_STREAMS,
    LOOP,
    MILLRACE,
    PARTITIONS,
    TRANSACTIONAL,
    Workload,
)
from tests.brokers import Broker
from tests.reading import final_records

_WORKER = (sys.executable, "-m", "benchmarks.peers.worker")
_TIMED_WORKER = (sys.executable, "-m", "benchmarks.peers.timed_worker")
_NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_HOUR_MS = 3_600_000
_SAMPLE_S, _SETTLE_S, _RUN_S, _STOP_S = 0.02, 2.0, 300.0, 60.0


class PeerRuns:
    """Writes each input once, and runs workloads on them, each in all ways.

    Millrace runs in so many `workers`, which share the partitions; the other ways in one process.
    """

    def __init__(
        self,
        broker: Broker,
        directory: Path,
        *,
        commit_interval_ms: int = COMMIT_INTERVAL_MS,
        guarantee: str = EXACTLY_ONCE,
        cache_max_bytes: int = CACHE_MAX_BYTES,
        workers: int = 1,
    ) -> None:
        self._workers = workers
        self._broker = broker
        self._servers = broker.bootstrap_servers
        self._directory = directory
        self._settings = [str(commit_interval_ms), guarantee, str(cache_max_bytes)]
        self._admin = AdminClient({"bootstrap.servers": self._servers, "log_level": 3})
        self._id = f"peers-{uuid4().hex[:6]}"
        self._runs = 0
        # Not long ago, as brokers delete by age, and at the beginning of a window.
        self._begin_ms = (int(time.time()) * 1_000 // _HOUR_MS - 1) * _HOUR_MS
        self._inputs: dict[Feed, str] = {}
        self._expected: dict[str, Expected] = {}
        self._class_path = cache(lambda: compile_peers(directory / "classes"))

    def run(self, workload: Workload, way: str) -> PeerFigures:
        """Run a workload in one way. Raises VoidRun for a wrong output, and where there is none."""
        topics = [self._write_input(feed) for feed in workload.feeds]
        expected = self._expect(workload)
        self._runs += 1
        application = f"{self._id}-{self._runs}"
        output, state = f"{application}-out", self._directory / application
        create_topic(self._broker, output, PARTITIONS)
        if way == LOOP:  # ours and Kafka Streams make their own
            create_topic(self._broker, f"{application}{CHANGELOG_SUFFIX}", PARTITIONS)
        right = topics[1] if len(topics) > 1 else ""
        arguments = [workload.topology, self._servers, application, str(state), topics[0], right]
        group = application if workload.has_internal_topic else ""
        log = self._directory / f"{application}.log"
        command = [*self._command(way, workload.records), *arguments, output, *self._settings]
        with log.open("wb") as file:
            processes = [
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
                for _ in range(self._workers if way == MILLRACE else 1)
            ]
        try:
            samples = self._sample_processes(
                processes,
                output,
                expected.at_least,
                log,
                topics,
                group=group,
                to_consume=workload.records if group else 0,
            )
            peak_mb = max(read_peak_mb(process.pid) for process in processes)
        finally:
            for process in processes:
                stop_process(process)
        difference = find_difference(expected, self._read_output(output))
        if difference is not None:
            raise VoidRun(difference)
        self._delete_topics(application)
        shutil.rmtree(state, ignore_errors=True)
        return compute_figures(
            samples, workload.records, peak_mb, by_input=workload.has_internal_topic
        )

    @contextmanager
    def start_application(
        self, topology: str, way: str, commit_interval_ms: int, steps: Path | None = None
    ) -> Iterator[tuple[str, str]]:
        """Run a topology on a new topic of input for the block; yield input and output topic.

        Millrace's worker writes the times of its steps to `steps`, if that is given.
        """
        self._runs += 1
        application = f"{self._id}-{self._runs}"
        topics = [f"{application}-in", f"{application}-out"]
        for topic in topics:
            create_topic(self._broker, topic, PARTITIONS)
        state, log = self._directory / application, self._directory / f"{application}.log"
        arguments = [topology, self._servers, application, str(state), topics[0], "", topics[1]]
        with log.open("wb") as file:
            process = subprocess.Popen(
                [
                    *self._command(way, sys.maxsize, steps),
                    *arguments,
                    str(commit_interval_ms),
                    EXACTLY_ONCE,
                ],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        try:
            yield topics[0], topics[1]
        except VoidRun as error:
            raise VoidRun(f"{error}: {log.read_text(errors='replace')[-2_000:]}") from None
        finally:
            if way == LOOP:  # It has no end, and all results were read.
                process.kill()
            stop_process(process)
        self._delete_topics(application)
        shutil.rmtree(state, ignore_errors=True)

    def _command(self, way: str, records: int, steps: Path | None = None) -> tuple[str, ...]:
        if way == MILLRACE and steps is not None:
            return (*_TIMED_WORKER, str(steps), way, str(records))
        if way not in (KAFKA_STREAMS, TRANSACTIONAL):
            return (*_WORKER, way, str(records))
        flags = [
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            f"-Dpeers.transactional={str(way == TRANSACTIONAL).lower()}",
        ]
        return ("java", *flags, "-cp", self._class_path(), "PeerApplication")

    def _sample_processes(
        self,
        processes: list[subprocess.Popen[bytes]],
        output: str,
        at_least: int,
        log: Path,
        inputs: list[str],
        *,
        group: str,
        to_consume: int,
    ) -> list[Sample]:
        """Sample processes until they commit no more output. Raises VoidRun if one ends, or hangs.

        With a `group` its committed offsets are sampled too, up to `to_consume` records of input.
        """
        samples: list[Sample] = []
        # It joins no group: it is only asked for the offsets.
        reader = Consumer({"bootstrap.servers": self._servers, "group.id": group or output})
        deadline = time.monotonic() + _RUN_S
        while not samples or not has_settled(samples, at_least, _SETTLE_S, consumed=to_consume):
            ended = [process.poll() for process in processes]
            if any(each is not None for each in ended) or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-2_000:]
                raise VoidRun(f"it ended or took over {_RUN_S} s: {ended}, {tail}")
            time.sleep(_SAMPLE_S)
            committed = self._committed_end(output)
            consumed = count_consumed(reader, inputs) if group else 0
            used_s = sum(cpu_s(process.pid) for process in processes)
            samples.append(Sample(time.monotonic(), committed, used_s, consumed))
        reader.close()
        return samples

    def _committed_end(self, topic: str) -> int:
        """Return the sum of the last stable offsets: how much of a topic is committed."""
        asked = {TopicPartition(topic, each): OffsetSpec.latest() for each in range(PARTITIONS)}
        ends = self._admin.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=30
        )
        return sum(end.result().offset for end in ends.values())

    def _read_output(self, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
        for message in final_records(self._servers, topic, PARTITIONS):
            yield message.key(), message.value()

    def _expect(self, workload: Workload) -> Expected:
        if workload.name not in self._expected:
            self._expected.clear()  # a million keys of the workload before are no longer needed
            feeds = workload.feeds
            inputs = [feed.generate_records(self._begin_ms, PARTITIONS) for feed in feeds]
            self._expected[workload.name] = workload.expect(inputs)
        return self._expected[workload.name]

    def _write_input(self, feed: Feed) -> str:
        """Return the topic with the records of a feed; write them unless they are there."""
        if feed in self._inputs:
            return self._inputs[feed]
        topic = f"{self._id}-in-{len(self._inputs)}"
        create_topic(self._broker, topic, PARTITIONS)
        queue = {"linger.ms": 50, "queue.buffering.max.messages": 2_000_000}
        # Kafka's own partitioner, so that keys of both sides of a join meet.
        settings = {"partitioner": "murmur2_random", "queue.buffering.max.kbytes": 1_000_000}
        producer = Producer({"bootstrap.servers": self._servers, **queue, **settings})
        for number, each in enumerate(feed.generate_records(self._begin_ms, PARTITIONS)):
            partition = -1 if each.partition is None else each.partition
            producer.produce(topic, each.value, each.key, partition, timestamp=each.timestamp_ms)
            if number % 10_000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise RuntimeError("the input could not be written in 120 s")
        self._inputs[feed] = topic
        return topic

    def _delete_topics(self, application: str) -> None:
        """Delete the topics of a run, so that they take no disk from the next."""
        topics = self._admin.list_topics(timeout=30).topics
        own = [name for name in topics if name.startswith(f"{application}-")]
        for answer in self._admin.delete_topics(own).values():
            answer.result(60)


def count_consumed(reader: Consumer, topics: list[str]) -> int:
    """Return how many records of the topics the reader's group has committed as consumed."""
    asked = [TopicPartition(topic, each) for topic in topics for each in range(PARTITIONS)]
    try:
        return sum(max(0, each.offset) for each in reader.committed(asked, timeout=30))
    except KafkaException as error:
        # A broker's first group waits for the topic of the offsets: it has committed nothing yet.
        if error.args[0].code() in _NO_COORDINATOR:
            return 0
        raise


def read_peak_mb(pid: int) -> float:
    """Return the most memory that a process has had resident, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1_024 / 1_000_000
    raise ValueError(f"the kernel does not say what process {pid} has had resident")


def stop_process(process: subprocess.Popen[bytes]) -> None:
    """Stop a process with SIGTERM, or kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
