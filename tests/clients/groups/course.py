"""Carry out a group's plan with real processes, and keep all that they said.

A step waits for conditions only. A group has settled when each partition has exactly one owner by
what the members say, and no member that is there owns two more than another.
"""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.clients.groups.delays import Delay
from tests.clients.groups.events import Life, Said
from tests.clients.groups.laws import Return
from tests.clients.groups.plan import Action, Step
from tests.clients.groups.roster import Protocol, Team
from tests.processes import HANG_LIMIT_S, wait_until

Command = Callable[[str], Sequence[str]]  # a member's name -> what to run


class Running:
    """Represents one process of a member and its life so far."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        self.life = Life(name)
        self.log = directory / f"{name}.log"
        self.is_paused = False
        events = directory / f"{name}.events"
        with events.open("wb") as out, self.log.open("wb") as log:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=log
            )
        self._said = Said(events)

    @property
    def pid(self) -> int:
        return self._process.pid

    def listen(self) -> None:
        """Take in what the process has said. Raises AssertionError if it has ended by itself."""
        status = self._process.poll()
        self.life.hear(self._said.read())
        assert status is None, f"{self.life.name} ended by itself: {status}\n{self.tail()}"

    def pause(self) -> None:
        self.life.paused.append(time.monotonic_ns())
        self._process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def ask_to_end(self) -> None:
        """Send SIGTERM, at which the process closes its client."""
        self.life.asked_to_end_ns = time.monotonic_ns()
        self._process.terminate()

    def see_end(self) -> None:
        """Wait until the process is gone, and check that it said that it has closed."""
        try:
            status = self._process.wait(HANG_LIMIT_S)
        finally:
            self.kill()
        closed = bool(self.life.events) and self.life.events[-1].what == "closed"
        assert closed, f"{self.life.name} did not close: {status}\n{self.tail()}"

    def kill(self) -> None:
        """Kill the process with SIGKILL, and take in what it had still said."""
        self._process.kill()
        self._process.wait()
        self.life.ended_ns = time.monotonic_ns()
        self.life.hear(self._said.read())
        self._said.close()

    def tail(self) -> str:
        """Return the end of what the process said on stderr."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])


class Course:
    """Represents the course of one group.

    What its members say is kept in the directory. While somebody has `broker_stays`, the broker is
    not killed.
    """

    def __init__(
        self,
        team: Team,
        steps: Sequence[Step],
        partitions: int,
        command: Command,
        directory: Path,
        broker_stays: threading.Lock,
    ) -> None:
        self.team = team
        self.steps = steps
        self.done = 0
        self.returns: list[Return] = []
        self.directory = directory
        self._partitions = partitions
        self._command = command
        self._broker_stays = broker_stays
        self._running: dict[str, Running] = {}
        self._all: list[Running] = []

    @property
    def lives(self) -> list[Life]:
        return [each.life for each in self._all]

    def run(self) -> None:
        """Carry out the plan until its last step has settled."""
        for step in self.steps:
            self._carry_out(step)
            if step.settles:
                self._settle()
            self.done += 1
        self._settle()

    def leave(self) -> None:
        """Close all members, the static ones last.

        The others' rebalance would wait for static members until their sessions are over, and a
        client that waits for it can't leave.
        """
        for static in (False, True):
            those = [name for name in self._running if self.team.members[name].static is static]
            for name in those:
                self._running[name].ask_to_end()
            for name in those:
                self._running.pop(name).see_end()

    def kill(self) -> None:
        """Kill the processes that are still there."""
        while self._running:
            self._running.popitem()[1].kill()

    @property
    def processes(self) -> list[tuple[int, list[Delay]]]:
        """Return the ids of the members' processes, and where their delays are kept."""
        return [(each.pid, each.life.delays) for each in list(self._running.values())]

    @property
    def plan(self) -> str:
        return " ".join(map(str, self.steps))

    def report(self) -> str:
        """Describe who owns what, and the end of what each process said on stderr."""
        lines = [f"{self.done} of {len(self.steps)} steps are done"]
        for each in self._running.values():
            lines.append(f"{each.life.name} owns {sorted(each.life.owned)}\n{each.tail()}")
        return "\n".join(lines)

    def listen(self) -> None:
        for each in self._running.values():
            each.listen()

    def _carry_out(self, step: Step) -> None:
        member = step.member
        if step.action is not Action.START:
            life = self._running[member].life
            self._wait(lambda: bool(life.events), f"{member} has been in the group")
        match step.action:
            case Action.START:
                self._start(member)
            case Action.LEAVE:
                self._leave(member)
            case Action.CRASH:
                self._running.pop(member).kill()
            case Action.PAUSE:
                stopped = self._running[member]
                stopped.pause()
                self._settle()
                stopped.go_on()
            case Action.RETURN:
                self._return(member)

    def _start(self, member: str) -> Running:
        number = sum(each.life.name.startswith(f"{member}.") for each in self._all) + 1
        running = Running(f"{member}.{number}", self._command(member), self.directory)
        self._all.append(running)
        self._running[member] = running
        return running

    def _leave(self, member: str) -> None:
        leaving = self._running.pop(member)
        leaving.ask_to_end()
        leaving.see_end()

    def _return(self, member: str) -> None:
        """Stop a static member and start it again; the others must not notice.

        With the consumer protocol it has to close, and the broker to hear of it: else the instance
        id is its until its session is over, and the client takes the refusal of it for fatal.
        """
        self._settle()
        owned = frozenset(self._running[member].life.owned)
        begin_ns = time.monotonic_ns()
        if self.team.members[member].protocol is Protocol.CONSUMER:
            with self._broker_stays:
                self._leave(member)
        else:
            self._running.pop(member).kill()
        back = self._start(member)
        self._wait(lambda: bool(back.life.owned), f"{member} is back")
        end_ns, again = time.monotonic_ns(), frozenset(back.life.owned)
        self.returns.append(Return(member, begin_ns, end_ns, owned, again))

    def _settle(self) -> None:
        self._wait(self._is_settled, "the group has settled")

    def _is_settled(self) -> bool:
        owned = [each.life.owned for each in self._running.values() if not each.is_paused]
        counts = sorted(map(len, owned))
        whole = sum(counts) == self._partitions == len(set().union(*owned))
        return whole and counts[-1] - counts[0] <= 1

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self.listen()
            return condition()

        wait_until(holds, what=f"not so: {what}")
