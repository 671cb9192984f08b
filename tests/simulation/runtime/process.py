"""Simulate a process whose threads, coroutines and connections stop and die as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from coordinator.errors import Code
from tests.simulation.network import Connection, Fate
from tests.simulation.runtime.threads import Killed, SimThread

if TYPE_CHECKING:
    from tests.simulation.runtime.threaded import ThreadedWorld

T = TypeVar("T")


class Blockade(Enum):
    """Names what does not get through between a process and the broker."""

    NOTHING = auto()
    REQUESTS = auto()
    ANSWERS = auto()


class Process:
    """Represents one life of a process.

    `trouble`: the probability that the network mistreats a request.
    """

    def __init__(self, world: ThreadedWorld, name: str, random: Random, trouble: float) -> None:
        self.world = world
        self.name = name
        self.random = random
        self.trouble = trouble
        self.is_dead = False
        self.blockade = Blockade.NOTHING
        self.coordinator_code: Code | None = None
        """The error of membership requests while the group's coordinator is away."""
        self.dies_in_write = -1
        """The process dies after so many keys of its next write to a store; -1: it doesn't."""
        self._frozen_until_ms = 0.0
        self._threads: list[SimThread] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._connections: list[ProcessConnection] = []
        self._at_death: list[Callable[[], None]] = []

    # Life and death

    def kill(self) -> None:
        """Kill the process as kill -9 does, so that nothing of it runs any more.

        A thread that does it to its own process ends with it.
        """
        if self.is_dead:
            return
        self.is_dead = True
        self.world.log("killed", self.name)
        for connection in self._connections:
            connection.cut()
        for task in tuple(self._tasks):
            task.cancel()
        for each in self._at_death:
            each()
        current = self.world.current
        for thread in self._threads:
            if thread is not current:
                self.world.loop.call_soon(thread.resume)
        if current is not None and current.process is self:
            raise Killed

    def at_death(self, action: Callable[[], None]) -> None:
        self._at_death.append(action)

    def freeze(self, for_ms: float) -> None:
        """Pause the process as SIGSTOP does, and resume it later; it sees only the clock jump."""
        self._frozen_until_ms = max(self._frozen_until_ms, self.world.loop.elapsed_ms + for_ms)
        self.world.log("frozen", self.name, for_ms)

    def block(self, what: Blockade, for_ms: float) -> None:
        """Block traffic of the network for a time."""
        self.blockade = what
        self.world.loop.after_ms(for_ms, self.unblock)

    def unblock(self) -> None:
        self.blockade = Blockade.NOTHING

    def lose_coordinator(self, code: Code, for_ms: float) -> None:
        """Make its coordinator one that has moved, loads the group or is not available."""
        self.coordinator_code = code
        self.world.loop.after_ms(for_ms, self.find_coordinator)

    def find_coordinator(self) -> None:
        self.coordinator_code = None

    def thaw(self) -> None:
        self._frozen_until_ms = 0.0

    @property
    def is_frozen(self) -> bool:
        return not self.is_dead and self.world.loop.elapsed_ms < self._frozen_until_ms

    @property
    def is_running(self) -> bool:
        """Return whether some thread of it has not ended."""
        return any(not thread.is_done for thread in self._threads)

    def check_alive(self) -> None:
        if self.is_dead:
            raise Killed

    # Threads

    def spawn(self, name: str, run: Callable[[], None]) -> SimThread:
        thread = SimThread(self, f"{self.name} {name}", run)
        self._threads.append(thread)
        self.world.loop.call_soon(self.when_running, thread.resume)
        return thread

    def when_running(self, resume: Callable[[], None]) -> None:
        """Call it now, or when the process resumes; resume threads of a dead one to unwind."""
        if self.is_frozen:
            self.world.loop.after_ms(5, self.when_running, resume)
        else:
            resume()

    def yield_turn(self) -> None:
        """Let another thread take its turn here."""
        self.check_alive()
        world = self.world
        world.require_progress()
        thread = world.current
        if thread is None:
            return
        if self.is_frozen or self.random.random() < world.preemption:
            thread.wait(lambda wake: None, self.random.uniform(0, 0.004))

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None) -> asyncio.Task[T] | None:
        """Start work and block this thread until it is done; return None if time is up.

        Then it goes on.
        """
        task = self.begin(work)
        return task if self.wait_for(task, timeout_s) else None

    def wait_for(self, future: asyncio.Future[Any], timeout_s: float | None) -> bool:
        """Block this thread until the future is done, at most so long; return whether it is."""
        self.check_alive()
        if not future.done():
            self.world.running().wait(
                lambda wake: future.add_done_callback(lambda _: wake()), timeout_s
            )
        return future.done()

    # Coroutines

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        self.check_alive()
        task: asyncio.Task[T] = self.world.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    async def sleep_ms(self, delay_ms: float) -> None:
        await self.world.loop.sleep_ms(delay_ms)
        await self.gate()

    async def await_response(self, answer: Awaitable[T]) -> T:
        """Return a response once the process runs.

        Raises Unanswered.
        """
        try:
            return await answer
        finally:
            await self.gate()

    async def gate(self) -> None:
        while self.is_frozen:
            await self.world.loop.sleep_ms(self._frozen_until_ms - self.world.loop.elapsed_ms)

    def connect(self, client_id: str) -> ProcessConnection:
        connection = ProcessConnection(self, client_id)
        self._connections.append(connection)
        return connection


class ProcessConnection(Connection):
    """Represents a connection that the blockades of its process affect, too."""

    def __init__(self, process: Process, client_id: str) -> None:
        super().__init__(process.world, client_id, process.random, process.trouble)
        self._process = process

    def _draw(self) -> tuple[Fate, float]:
        self.trouble = self._process.trouble
        match self._process.blockade:
            case Blockade.REQUESTS:
                return Fate.REQUEST_LOST, 0.0
            case Blockade.ANSWERS:
                return Fate.ANSWER_LOST, 0.0
            case _:
                return super()._draw()
