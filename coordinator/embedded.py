"""Run a broker inside this process, for tests, notebooks and small applications.

    with EmbeddedBroker(topics={"lines": 4}) as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})

It runs on a thread of its own with its own loop, and listens on a free port of this machine. Its
clients are the ordinary ones, over the wire.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import uvloop

from coordinator.broker import Broker
from coordinator.clock import Clock
from coordinator.config import BrokerConfig
from coordinator.faults import Faults
from coordinator.wire.server import format_address


class EmbeddedBroker:
    """Runs a broker in this process as a context manager; without `data_dir` its data is temporary.

    `topics` (name: partitions) are created if missing. `settings` are Kafka's broker settings by
    dotted name. `clock` replaces the system's: with a `clock.ShiftedClock` a test lets days pass.
    Raises on entry: WrongSetting, UnusableDataDirectory, CannotListen. On exit:
    BrokenInvariant, if the broker had to stop to protect its data.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, object] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._topics = dict(topics or {})
        self._settings = dict(settings or {})
        self._host = host
        self._port = port
        self._clock = clock
        self._exits = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: Broker | None = None
        self._failures: list[BaseException] = []
        self.faults = Faults()  # see `faults`; may be set before it runs, and while it runs

    @property
    def bootstrap_servers(self) -> str:
        """Return the broker's address as `host:port`; RuntimeError unless it runs."""
        if self._broker is None:
            raise RuntimeError("the broker isn't running: use it as `with EmbeddedBroker() as ...`")
        return format_address(self._broker.host, self._broker.port)

    @property
    def metrics_url(self) -> str:
        """Return the URL that Prometheus scrapes, if `metrics.port` is set (0: any free port)."""
        if self._broker is None or self._broker.metrics_port < 0:
            raise RuntimeError('no metrics: use EmbeddedBroker(settings={"metrics.port": 0})')
        address = format_address(self._broker.config.metrics_host, self._broker.metrics_port)
        return f"http://{address}/metrics"

    def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create the topics that don't exist, with the given numbers of partitions.

        Raises: RuntimeError unless the broker runs; Refused for a topic that can't be created.
        """
        if self._broker is None or self._loop is None:
            raise RuntimeError("the broker isn't running: give it topics=... when it is made")
        broker = self._broker

        async def create_missing_topics() -> None:
            await broker.ensure_topics_once_names_are_free(topics)

        asyncio.run_coroutine_threadsafe(create_missing_topics(), self._loop).result()

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            directory = self._data_dir
            if directory is None:
                directory = Path(exits.enter_context(_create_temporary_directory()))
            config = BrokerConfig.from_settings(
                directory, self._settings, host=self._host, port=self._port
            )
            self._start_thread(config)
            exits.callback(self._stop_thread)
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.close()

    def _start_thread(self, config: BrokerConfig) -> None:
        started = threading.Event()
        self._failures.clear()

        def run_event_loop() -> None:
            try:
                uvloop.run(self._run_until_stopped_or_failed(config, started))
            except BaseException as error:
                self._failures.append(error)
            finally:
                started.set()

        self._thread = threading.Thread(target=run_event_loop, name="embedded-broker", daemon=True)
        self._thread.start()
        started.wait()
        if self._failures:
            self._thread.join()
            raise self._failures[0]

    async def _run_until_stopped_or_failed(
        self, config: BrokerConfig, started_event: threading.Event
    ) -> None:
        broker = Broker(config, clock=self._clock, faults=self.faults)
        await broker.start()
        try:
            await broker.ensure_topics_once_names_are_free(self._topics)
            self._loop = asyncio.get_running_loop()
            self._broker = broker
            started_event.set()
            await broker.wait_for_stop_request()
        finally:
            self._broker = None
            await broker.stop()
        if broker.failure is not None:
            raise broker.failure

    def _stop_thread(self) -> None:
        broker, loop = self._broker, self._loop
        if broker is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(broker.request_stop)
        self._thread.join()
        if self._failures:
            raise self._failures[0]


def _create_temporary_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="millrace-broker-", ignore_cleanup_errors=True)
