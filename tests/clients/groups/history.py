"""Run groups side by side against one broker, and hold what there is to judge."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.brokers import Broker
from tests.clients.copying import committed_offsets, read_committed
from tests.clients.groups.course import Command, Course
from tests.clients.groups.delays import Delay, watching
from tests.clients.groups.flow import Flow
from tests.clients.groups.roster import GROUP_CONFIGS, TEAMS
from tests.conformance.calls import create_topic
from tests.conformance.configs import DONE, GROUP, SET, alter
from tests.conformance.wire import Client
from tests.processes import ServerProcess, wait_until

PARTITIONS = 12
BROKER_ENDS_AFTER = (1 / 3, 2 / 3)
LIBRDKAFKA = (sys.executable, "-X", "faulthandler", str(Path(__file__).with_name("member.py")))


class History:
    """Represents the history of the groups of these names.

    `programs` has the command of each other client's member.

    All read one input, each with offsets of its own. `errors` are what a group's course ended with
    before its time, by name; `outputs` the numbers in each partition of what a group has copied.
    """

    def __init__(
        self,
        broker: Broker,
        programs: Mapping[str, Sequence[str]],
        topic: str,
        names: Iterable[str],
        seed: int,
        directory: Path,
    ) -> None:
        self.seed = seed
        self.broker_ends_ns: list[int] = []
        self.broker_delays: list[Delay] = []
        self.errors: dict[str, str] = {}
        self.outputs: dict[str, list[list[int]]] = {}
        self._broker = broker
        self._programs = {"librdkafka": LIBRDKAFKA, **programs}
        self._topic = topic
        self._flow = Flow(broker.bootstrap_servers, topic)
        self._broker_stays = threading.Lock()
        self.courses: dict[str, Course] = {}
        for name in names:
            steps = TEAMS[name].steps(Random(f"{seed} {name}"))
            logs = directory / name
            logs.mkdir()
            self.courses[name] = Course(
                TEAMS[name], steps, PARTITIONS, self._command(name), logs, self._broker_stays
            )

    @property
    def records(self) -> Mapping[tuple[int, int], int]:
        """Return the number of each produced record by its partition and offset."""
        return self._flow.records

    def run(self) -> None:
        """Run the groups to their ends: create topics, start members and carry out their plans."""
        with Client(self._broker.bootstrap_servers) as client:
            create_topic(client, self._topic, PARTITIONS)
            for name, course in self.courses.items():
                group = self._group(name)
                if course.team.copies:
                    create_topic(client, group, PARTITIONS)
                changes = [(key, SET, value) for key, value in GROUP_CONFIGS.items()]
                assert alter(client, GROUP, group, *changes) == DONE
        with self._flow.flowing(), watching(self._processes):
            self._run_courses()
        assert self._flow.errors == []
        assert self._flow.records, "nothing has flowed"
        if self._broker.kind == "embedded" and not self.errors:
            assert len(self.broker_ends_ns) == len(BROKER_ENDS_AFTER), "the broker was not killed"
        for name, course in self.courses.items():
            self._finish(name, course)

    def kill_members(self) -> None:
        """Kill the processes that are still running."""
        for course in self.courses.values():
            course.kill()

    def _processes(self) -> list[tuple[int, list[Delay]]]:
        """Return the process ids of the broker and all members, and where their delays are kept."""
        found = [each for course in self.courses.values() for each in course.processes]
        if isinstance(self._broker, ServerProcess):
            found.append((self._broker.pid, self.broker_delays))
        return found

    def _group(self, name: str) -> str:
        """Return the group's id, which is the name of its output too."""
        return f"{self._topic}-{name}"

    def _command(self, name: str) -> Command:
        team, group = TEAMS[name], self._group(name)

        def command(member: str) -> Sequence[str]:
            entry = team.members[member]
            settings = dict(entry.settings)
            if entry.static:
                settings["group.instance.id"] = member
            if team.copies:
                settings |= {"output": group, "transactional.id": f"{group}-{member}"}
            if entry.by_regex:
                settings["regex"] = f"^{self._topic}$"
            pairs = [f"{key}={value}" for key, value in settings.items()]
            program = self._programs[entry.client]
            return [*program, self._broker.bootstrap_servers, self._topic, group, *pairs]

        return command

    def _run_courses(self) -> None:
        threads = [
            threading.Thread(target=self._run_course, args=each, name=each[0])
            for each in self.courses.items()
        ]
        for each in threads:
            each.start()
        if self._broker.kind == "embedded":
            self._kill_broker(threads)
        for each in threads:
            each.join()

    def _run_course(self, name: str, course: Course) -> None:
        try:
            course.run()
        except Exception as error:  # the other groups go on
            self.errors[name] = f"{error}\n{course.report()}"

    def _kill_broker(self, threads: Sequence[threading.Thread]) -> None:
        """Kill the broker in the middle, when these parts of all steps are done."""
        steps = sum(len(each.steps) for each in self.courses.values())
        for part in BROKER_ENDS_AFTER:
            while sum(each.done for each in self.courses.values()) < part * steps:
                if not any(each.is_alive() for each in threads):
                    return
                time.sleep(0.01)
            with self._broker_stays:
                self.broker_ends_ns.append(time.monotonic_ns())
                self._broker.kill()
                self._broker.restart()

    def _finish(self, name: str, course: Course) -> None:
        """Wait until the group has committed to the end and its members have left.

        Then read what it has copied.
        """
        group = self._group(name)
        ends = [0] * PARTITIONS
        for partition, offset in self.records:
            ends[partition] = max(ends[partition], offset + 1)

        def found() -> list[int]:
            return committed_offsets(self._broker, group, self._topic, PARTITIONS)

        def has_committed() -> bool:
            course.listen()
            return found() == ends

        if name not in self.errors:
            try:
                wait_until(
                    has_committed,
                    what=lambda: f"{found()} committed, of {ends}",
                )
                course.leave()
            except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
                self.errors[name] = f"{error}\n{course.report()}"
        if course.team.copies:
            read = read_committed(self._broker, group, PARTITIONS)
            self.outputs[name] = [[int(each or b"-1") for each in values] for values in read]
