"""Simulate one world: a broker that comes and goes on its disk, a network, clients, and time.

The broker is the product's own, `Broker.load` without the sockets, and it is given this world's
clock, scheduler, disk and ids. What it does is looked at after every request and every timer: each
checker (see `checkers`) gets the requests and responses, and reads the broker's state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID
from zlib import crc32

from coordinator.api.router import Router
from coordinator.broker import Broker
from coordinator.config import BrokerConfig
from coordinator.log.partition import PartitionLog
from coordinator.wire.connection import Disconnect
from tests.simulation.disk import Attached, Crashed, Platter
from tests.simulation.ledger import Ledger
from tests.simulation.loop import Call, VirtualLoop
from tests.simulation.network import Connection, Request
from tests.simulation.truth import Truth

if TYPE_CHECKING:
    from tests.simulation.checkers.checker import Checker

DATA_DIR = Path("/data")
TOPICS = {"input": 2, "output": 2, "table": 2}
COMPACTED = {"latest": 1}
COMPACTED_SOON = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "500",
    "file.delete.delay.ms": "300",
}


DAYS: dict[str, Any] = {
    "producer_id_expiration_check_interval_ms": 200,
    "transaction_remove_expired_transaction_cleanup_interval_ms": 200,
    "offsets_retention_check_interval_ms": 200,
    "log_retention_check_interval_ms": 200,
    "log_retention_ms": -1,  # what is expected of records and copies is that they are there
    "offsets_retention_minutes": 2_000_000,
}
"""Settings of brokers on which days pass: nothing but ids and segments gets old."""


class Violation(AssertionError):
    """Reports that a checker has found a broken promise of the product."""

    def __init__(self, checker: str, message: str) -> None:
        super().__init__(f"{checker}: {message}")
        self.checker = checker
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Holds what is the same for all of a history."""

    trouble: float = 0.0  # the probability that the network mistreats a request
    flushes: bool = False  # every append is flushed before it is answered: power may fail
    segment_bytes: int = 1_048_576
    compacts: bool = False  # what the coordinators keep is compacted as soon as it can be
    transaction_timeout_ms: int = 4_000
    days: bool = False  # days may pass: what expires is looked for all the time
    transactions: str = "v1"  # v2, or mixed: every second life of a transactional id is v2

    def is_v2(self, life: int) -> bool:
        return self.transactions == "v2" or (self.transactions == "mixed" and life % 2 == 0)


class _Scheduler:
    """Stands in for the broker's scheduler: makes its calls while it lives, and checks each."""

    def __init__(self, world: World, life: int) -> None:
        self._world = world
        self._life = life

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Call:
        return self._world.loop.after_ms(delay_ms, self._call, callback)

    def _call(self, callback: Callable[[], None]) -> None:
        if self._world.life == self._life:
            with self._world.observe_action():
                callback()


class _Background:
    """Stands in for the broker's background thread: does work a little later, if it still lives."""

    def __init__(self, scheduler: _Scheduler, random: Random) -> None:
        self._scheduler = scheduler
        self._random = random

    def run_in_background(
        self, work: Callable[[], None], on_done: Callable[[Exception | None], None]
    ) -> None:
        def make() -> None:
            failure: Exception | None = None
            try:
                work()
            except Exception as error:
                failure = error
            on_done(failure)

        self._scheduler.call_later(self._random.uniform(1, 20), make)

    def close(self) -> None:
        pass


class World:
    """Represents a world; `life` counts the brokers, of which none listens if it is 0 or dead.

    `topics` and `compacted` are made before the broker listens, by number of partitions.
    `broker_settings` are fields of its configuration.
    """

    def __init__(
        self,
        setting: Setting,
        seed: int,
        topics: Mapping[str, int] = TOPICS,
        compacted: Mapping[str, int] = COMPACTED,
        broker_settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.setting = setting
        self.topics = topics
        self.compacted = compacted
        self._broker_settings = broker_settings or {}
        self.random = Random(f"{seed} world")
        self.loop = VirtualLoop()
        self.platter = Platter()
        self.disk = Attached(self.platter, self.random)
        self.ledger = Ledger()
        self.connections: dict[Connection, None] = {}
        self.checkers: list[Checker] = []
        self.truths: dict[tuple[str, int], Truth] = {}
        self.trace: list[str] = []
        self.life = 0
        self.is_listening = False
        self.down_ms = 500.0
        self.broker: Broker
        self._router: Router
        self._ids = 0
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._answers: set[asyncio.Task[Any]] = set()
        self._is_acting = False

    # The broker's life

    def start_broker(self) -> None:
        """Load a broker from the disk; if it crashes in loading, it is started again later."""
        self.life += 1
        self.disk = Attached(self.platter, self.random)
        scheduler = _Scheduler(self, self.life)
        broker = Broker(
            self._config(),
            clock=self.loop,
            scheduler=scheduler,
            disk=self.disk,
            make_id=self._make_id,
            background=_Background(scheduler, self.random),
        )
        self.log("start", self.life)
        try:
            broker.start_without_listening()
            self._make_topics(broker)
        except Crashed:
            self._gone()
            return
        self.broker = broker
        self._router = broker.create_router()
        self.is_listening = True
        self._read_again()
        for checker in self.checkers:
            checker.handle_load()

    def stop(self, down_ms: float) -> None:
        """Stop the broker as a person does, even if it crashes meanwhile."""
        self.down_ms = down_ms
        if self.is_listening:
            with self.observe_action():
                self.broker.close()
                self._gone()

    def crash(self, down_ms: float, in_changes: int, *, power: bool = False) -> None:
        """Crash the broker at once or in one of its next changes of the disk.

        With `power`, at once, it also loses what was not flushed.
        """
        self.down_ms = down_ms
        if in_changes and not power and self.is_listening:
            self.disk.crash_in(in_changes)
            return
        if self.is_listening:
            self.disk.is_gone = True
            self._gone()
        if power:
            self.platter.lose_power(self.random)
            self.log("power lost")

    def _gone(self) -> None:
        was_listening, self.is_listening = self.is_listening, False
        if was_listening:
            with suppress(
                Crashed
            ):  # so that no half of a cleaning is left to the garbage collector
                self.broker.cleaner.close()
        self.life += 1
        self.log("gone")
        for connection in tuple(self.connections):
            connection.cut()
        if was_listening:
            for checker in self.checkers:
                checker.handle_crash()
        self.loop.after_ms(self.down_ms, self._start_if_down)

    def _start_if_down(self) -> None:
        if not self.is_listening:
            with self.raise_violations():
                self.start_broker()

    def run_expensive_checks(self) -> None:
        """Let the checkers run their expensive checks."""
        if self.is_listening:
            with self.raise_violations():
                for checker in self.checkers:
                    checker.run_expensive_checks()

    def load_copy(self) -> Broker:
        """Return another broker, loaded from a copy of the present disk."""
        scheduler = _Scheduler(self, -1)
        broker = Broker(
            self._config(),
            clock=self.loop,
            scheduler=scheduler,
            disk=Attached(self.platter.copy(), Random(0)),
            make_id=lambda: UUID(int=1),
            background=_Background(scheduler, Random(0)),
        )
        broker.start_without_listening()
        return broker

    def _make_topics(self, broker: Broker) -> None:
        broker.ensure_topics(self.topics)
        for name, count in self.compacted.items():
            if broker.topics.get(name) is None:
                broker.topics.create_topic(name, count, COMPACTED_SOON)
        for name in ("__consumer_offsets", "__transaction_state"):
            topic = broker.topics.find_including_hidden(name)
            if self.setting.compacts and topic and topic.configs != COMPACTED_SOON:
                broker.topics.save_and_replace_configs(name, COMPACTED_SOON)

    def _config(self) -> BrokerConfig:
        setting = self.setting
        flushing: dict[str, Any] = {"log_flush_interval_messages": 1} if setting.flushes else {}
        settings = {**(DAYS if setting.days else {}), **self._broker_settings}
        return BrokerConfig(
            data_dir=DATA_DIR,
            offsets_topic_num_partitions=2,
            transaction_state_log_num_partitions=2,
            log_segment_bytes=setting.segment_bytes,
            log_index_interval_bytes=200,
            log_cleaner_backoff_ms=250,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000,
            **flushing,
            **settings,
        )

    def _make_id(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids << 64 | 0x8000_0000_0000)

    # Requests

    def dispatch(self, request: Request, read: Callable[[bytes], Any]) -> Any:
        """Return the response as `read` reads it, a future of it, or None if there is none."""
        for checker in self.checkers:
            checker.handle_request(request)
        answer: Any = None
        with self.observe_action():
            answer = self._router.dispatch_frame(request.frame, "127.0.0.1")
            if answer is not None and not hasattr(answer, "__await__"):
                answer = read(_whole(answer))
        if hasattr(answer, "__await__"):
            later = self.loop.create_task(self._later(answer, read))
            self._answers.add(later)  # nobody else may hold it: of a request that came late
            later.add_done_callback(self._answers.discard)
            return later
        return answer

    async def _later(self, answer: Awaitable[Any], read: Callable[[bytes], Any]) -> Any:
        found = await answer
        return None if found is None else read(_whole(found))

    def observe(self, request: Request, response: Any, answer: bytes) -> None:
        """Tell the checkers of a request that took effect, and of its response."""
        self.log(request.client_id, request.api_key, crc32(answer))
        for checker in self.checkers:
            checker.handle_response(request, response)

    @contextmanager
    def observe_action(self) -> Iterator[None]:
        """Run an action of the broker, in which it may crash, and check it afterwards."""
        if self._is_acting:
            yield
            return
        self._is_acting = True
        try:
            yield
        except Crashed:
            self._gone()
            return
        finally:
            self._is_acting = False
        if self.is_listening:
            if self.broker.failure is not None:
                raise Violation("broker", f"it stops: {self.broker.failure}")
            self._read_on()
            for checker in self.checkers:
                checker.handle_action()

    @contextmanager
    def raise_violations(self) -> Iterator[None]:
        """Turn an exception of the broker into a violation."""
        try:
            yield
        except (Violation, Crashed):
            raise
        except Exception as error:
            raise Violation("broker", f"{type(error).__name__}: {error}") from error

    # Logs

    def partitions(self) -> Iterator[tuple[tuple[str, int], PartitionLog]]:
        for name in (*self.topics, *self.compacted):
            topic = self.broker.topics.get(name)
            for index, partition in enumerate(topic.partitions if topic else ()):
                yield (name, index), partition

    def _read_on(self) -> None:
        for key, partition in self.partitions():
            truth = self.truths[key]
            while truth.end_offset < partition.end_offset:
                before = truth.end_offset
                truth.feed(bytes(partition.read(before, 1 << 20)))
                if truth.end_offset == before:
                    raise Violation("broker", f"nothing readable at {before} of {key}")

    def _read_again(self) -> None:
        for key, partition in self.partitions():
            # A compacted log no longer has all records, so that what was read of it is kept.
            if key[0] not in self.compacted or key not in self.truths:
                start = partition.start_offset
                self.truths[key] = Truth(end_offset=start, start_offset=start)
        self._read_on()

    # Clients

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[Any]:
        task = self.loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    @property
    def unfinished(self) -> list[str]:
        """Return the names of the coroutines that the clients still run."""
        return [str(task.get_coro()) for task in self._tasks]

    def abandon(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    def log(self, *what: object) -> None:
        self.trace.append(f"{self.loop.elapsed_ms:.3f} {' '.join(map(str, what))}")


def _whole(answer: Any) -> bytes:
    """Return a response's bytes, read as they are sent.

    Raises Disconnect if that fails.
    """
    if isinstance(answer, bytes):
        return answer
    try:
        return b"".join(p if isinstance(p, bytes) else p.read(0, len(p)) for p in answer)
    except OSError as error:
        raise Disconnect(str(error)) from error


def silence_broker_log() -> None:
    """Silence the broker's warnings of the faults that a simulation makes."""
    logging.getLogger("coordinator").setLevel(logging.CRITICAL + 1)
