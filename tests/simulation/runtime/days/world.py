"""Keep what was read of logs that expire, and know which refusals the passed days justify."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from coordinator.errors import Code
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.shard.slices import run_to_completion
from tests.simulation.runtime.clients.producer import SimProducer
from tests.simulation.runtime.days.refusals import Cause
from tests.simulation.runtime.days.scenario import DAY_MS
from tests.simulation.runtime.process import Process
from tests.simulation.runtime.topologies import APPLICATION
from tests.simulation.runtime.world import PARTITIONS, RuntimeSetting, RuntimeWorld
from tests.simulation.truth import Truth


class DaysWorld(RuntimeWorld):
    """Represents a world in which days pass; `causes` are reasons for which it may be refused."""

    def __init__(self, setting: RuntimeSetting, seed: int) -> None:
        super().__init__(setting, seed)
        self.causes: set[Cause] = set()
        if setting.kind == "versioned":
            self._behind_ms = DAY_MS
        self.empty_ms = 0
        """How long no worker has run; 0 while one does."""
        self.aborted_at_ms = -math.inf
        """The time, since the beginning, of the last aborted records on the inputs."""
        self._others: list[Process] = []

    @property
    def is_aborting(self) -> bool:
        """Return whether another producer's transaction has not ended yet."""
        return any(process.is_running for process in self._others)

    def replace_machine(self, number: int) -> None:
        """Lose a machine's disk, unless a worker runs on it."""
        machine = self.machines[number]
        if any(each.is_alive and each.machine is machine for each in self.workers):
            return
        for path in tuple(machine.databases):
            self.report_deletion(machine.databases.pop(path))
        machine.subtopologies.clear()

    def set_topic(self, topic: str, name: str, value: str) -> None:
        """Change a setting of a topic that exists."""
        found = self.broker.topics.get(topic)
        if found is not None:
            self.broker.topics.save_and_replace_configs(topic, {**found.configs, name: value})

    def add_partition(self, topic: str) -> None:
        """Add a partition to a topic of the input; what is written from now on goes there too."""
        self.feed_partitions = PARTITIONS + 1
        with self.observe_action():
            self.broker.topics.add_partitions(topic, self.feed_partitions)
        self.causes.add(Cause.PARTITIONS)

    def recreate(self, topic: str, *causes: Cause) -> None:
        """Delete a topic and make it again, empty, with another id."""
        found = self.broker.topics.get(topic)
        assert found is not None
        with self.observe_action():
            self.broker.topics.delete_topic(found)
            self.broker.topics.free_deleted_name(topic)
            self.broker.topics.create_topic(topic, PARTITIONS, found.configs)
            for number in range(PARTITIONS):
                self.truths[topic, number] = Truth()
        # The group's offsets of a topic are deleted with it.
        self.causes |= set(causes) or {Cause.TOPIC, Cause.OFFSETS}

    def fill_changelog_again(self, topic: str) -> None:
        """Make a changelog again, and abort as many records in it as it had offsets."""
        partitions = [self.broker.topics.find_partition(topic, n) for n in range(PARTITIONS)]
        end = max(each.end_offset for each in partitions if each is not None)
        self.recreate(topic, Cause.TOPIC)
        self._abort_records([topic], 0, end)

    def cut_changelog(self, topic: str, part: float) -> None:
        """Delete a part of the records of each partition, the first ones, and one at least."""
        with self.observe_action():
            for number in range(PARTITIONS):
                log = self.broker.topics.find_partition(topic, number)
                if log is not None and log.end_offset:
                    log.delete_records_before(max(int(part * log.end_offset), 1))
                    self.causes.add(Cause.LAYOUT)

    def delete(self, topic: str) -> None:
        """Delete a topic for good."""
        found = self.broker.topics.get(topic)
        assert found is not None
        with self.observe_action():
            self.broker.topics.delete_topic(found)
            self.broker.topics.free_deleted_name(topic)
            for place in [each for each in self.truths if each[0] == topic]:
                del self.truths[place]
        self.causes.add(Cause.RESET)

    def set_offsets(self, back: int, *, deletes: bool) -> None:
        """Commit offsets of the inputs that lie `back`, or delete those of the first partition.

        Where no store tells which partitions were read, those of all are deleted.
        """
        offsets = self.broker.coordinators.groups.offsets
        places = [
            (topic, number)
            for topic in sorted(self.sources - self.topology().repartition_topics)
            for number in range(PARTITIONS)
        ]
        with self.observe_action():
            if deletes:
                is_whole = self.runtime.kind == "regroup"
                run_to_completion(
                    offsets.delete_offsets_in_slices(
                        APPLICATION, places if is_whole else places[:1]
                    )
                )
            else:
                earlier = [
                    OffsetToCommit(*place, max(self.committed_offset(*place)[0] - back, 0))
                    for place in places
                ]
                command = OffsetCommitCommand(APPLICATION, earlier)
                offsets.commit_offsets(
                    command, CommittingMember(), unknown_group_code=Code.GROUP_ID_NOT_FOUND
                )
        self.causes.add(Cause.OFFSETS)

    def abort_on_inputs(self, number: int) -> None:
        """Write a record to each input partition, in a transaction that is aborted."""
        self.aborted_at_ms = self.loop.elapsed_ms
        self._abort_records(sorted(self.sources - self.topology().repartition_topics), number, 1)

    def _abort_records(self, topics: Sequence[str], number: int, count: int) -> None:
        """Write `count` records to each partition of the topics, in an aborted transaction."""
        process = Process(self, f"other-{number}", Random(f"{self.seed} {number}"), 0.0)

        def run() -> None:
            producer = SimProducer(
                process, {"client.id": "other", "transactional.id": f"other-{number}"}
            )
            producer.init_transactions(5)
            producer.begin_transaction()
            for topic in topics:
                for partition in range(PARTITIONS):
                    for _ in range(count):
                        producer.produce(topic, b"aborted", b"aborted", partition)
            producer.flush(5)
            producer.abort_transaction(5)

        self._others.append(process)
        process.spawn("aborting", run)

    def _read_again(self) -> None:
        """Keep what was read before, of which a part may have expired since."""
        self._read_on()

    def end(self) -> None:
        for process in tuple(self._others):
            process.kill()
        super().end()
