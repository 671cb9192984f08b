"""Run one broker: wire all its parts together on one asyncio loop.

It starts in this order: lock the data directory, load the topics, load the coordinators from their
internal topics, listen. It stops in the reverse order, so that no request reaches a half-stopped
broker. All state belongs to the loop's thread and needs no lock; long calls that touch none of it
(flushes, checkpoints, removing files) run on one other thread.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from coordinator.api.context import BrokerServices
from coordinator.api.request_counters import RequestCounters
from coordinator.api.router import APIS, Api, Router, list_api_versions
from coordinator.clock import Background, Clock, Scheduler, SystemClock, Timer
from coordinator.config import BrokerConfig
from coordinator.coordinators import Coordinators
from coordinator.dynamic_config import DynamicConfigs, ResourceType
from coordinator.event_loop import BackgroundThread, LoopScheduler
from coordinator.fail_stop import FailStop, GuardedScheduler
from coordinator.faults import Faults
from coordinator.features import Features
from coordinator.fetching.session_cache import FetchSessionCache
from coordinator.linux_calls import create_thread_clock
from coordinator.log.cleaner.cleaner import LogCleaner
from coordinator.log.data_directory import DataDirectory
from coordinator.log.disk import BrokerDisk, SystemDisk
from coordinator.log.faulty_disk import FaultyDisk
from coordinator.log.host import BrokerHost
from coordinator.log.maintenance import LogMaintenance
from coordinator.log.topics import TopicRegistry
from coordinator.wire.server import (
    CannotListen,
    ConnectionLimits,
    SocketServer,
    format_address,
)

_TOPIC_NAMES_FREE_TIMEOUT_S = 60


def create_uuid() -> UUID:
    """Return a random UUID whose base64 text doesn't begin with "-", as command-line options do."""
    while True:
        identity = uuid4()
        if not base64.urlsafe_b64encode(identity.bytes).startswith(b"-"):
            return identity


class Broker:
    """Runs one Kafka broker; `start` and `stop` are called once each, on a running loop."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        disk: BrokerDisk | None = None,
        make_id: Callable[[], UUID] = create_uuid,
        background: Background | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.config = config
        self.faults = faults or Faults()
        self.clock: Clock = clock or SystemClock()
        self._fail_stop = FailStop(self.request_stop)
        self.scheduler: Scheduler = GuardedScheduler(scheduler or LoopScheduler(), self._fail_stop)
        self.features = Features(
            config.transaction_version,
            config.group_version,
            config.streams_version,
            allows_consumer_protocol=config.allows_consumer_protocol,
            allows_streams_protocol=config.allows_streams_protocol,
        )
        self.host = config.host
        self.port = config.port
        self.metrics_port = -1  # there is no metrics endpoint
        self.dynamic_configs: DynamicConfigs
        self.topics: TopicRegistry
        self.coordinators: Coordinators
        self.cleaner: LogCleaner
        self.services: BrokerServices
        self._server: SocketServer | None = None
        self._disk = FaultyDisk(disk or SystemDisk(), self.faults, self.clock)
        self._expired_producer_count = 0
        self._make_id = make_id
        self._background: Background = background or BackgroundThread()
        self._close_stack = ExitStack()  # closes what was opened, in reverse order
        self._producer_expiry_timer: Timer | None = None
        self._stop_requested = asyncio.Event()

    @property
    def failure(self) -> BaseException | None:
        """Return the failure for which the broker stops, None if there is none."""
        return self._fail_stop.failure

    async def start(self) -> None:
        """Load the data directory, then listen for clients.

        Raises: CannotListen, and what `start_without_listening` raises; nothing is left open then.
        """
        self.start_without_listening()
        self._server = server = self._create_server()
        try:
            await server.start(self.config.host, self.config.port)
            self._start_metrics_server()
        except BaseException:
            self.close()
            raise
        self.port = server.port
        self.services.endpoint = self._describe_endpoint()

    def create_router(self, apis: Iterable[Api] = APIS) -> Router:
        """Create a router that answers requests with this broker, once it has been loaded."""
        return Router(self.services, self.faults, self._fail_stop, apis)

    def _create_server(self) -> SocketServer:
        config = self.config
        return SocketServer(
            self.create_router().dispatch_frame,
            ConnectionLimits(
                frame_bytes_max=config.socket_request_max_bytes,
                queue_max=config.queued_max_requests,
                request_bytes_max=config.queued_max_request_bytes,
                connections_max=config.max_connections,
                connections_per_host_max=config.max_connections_per_ip,
                idle_ms_max=config.connections_max_idle_ms,
            ),
            self.clock,
            self.scheduler,
        )

    def _describe_endpoint(self) -> dict[str, Any]:
        """Return the node id, host and port under which clients reach this broker."""
        return {"node_id": self.config.node_id, "host": self.host, "port": self.port}

    def _start_metrics_server(self) -> None:
        if self.config.metrics_port < 0:
            return
        # Imported only if wanted: prometheus_client is not loaded otherwise.
        from coordinator.metrics.broker_figures import MeasuredBroker
        from coordinator.metrics.loop_delay import LoopDelayMeter
        from coordinator.metrics.server import start_metrics_server

        assert self._server is not None
        meter = LoopDelayMeter(self.clock, self.scheduler)
        measured = MeasuredBroker(
            services=self.services,
            connections=self._server.connections,
            cleaner_counters=self.cleaner.counters,
            flush_times=self._disk.flush_times,
            loop_delays=meter.delays,
            read_loop_time_s=create_thread_clock(),
            count_expired_producers=lambda: self._expired_producer_count,
        )
        host, port = self.config.metrics_host, self.config.metrics_port
        try:
            self.metrics_port, stop = start_metrics_server(measured, host, port)
        except OSError as error:
            where = format_address(host, port)
            raise CannotListen(f"can't serve metrics on {where} ({error.strerror})") from error
        self._close_stack.callback(stop)
        meter.start_timer()
        self._close_stack.callback(meter.close)

    def start_without_listening(self) -> None:
        """Open the data directory and start topics and coordinators, without listening.

        Raises: UnusableDataDirectory.
        """
        config = self.config
        storage = DataDirectory(config.data_dir, config.node_id, self._make_id(), self._disk)
        self._close_stack.callback(storage.close)
        host = BrokerHost(self._disk, self.clock, self.scheduler, self._background)
        try:
            self.dynamic_configs = DynamicConfigs(config, storage, self._apply_dynamic_configs)
            self.dynamic_configs.restore_features(self.features)
            self.config = config = self.dynamic_configs.effective_config()
            self.topics = TopicRegistry(storage, config, host, self._make_id)
            self._close_stack.callback(self.topics.close)
            self._close_stack.callback(self._background.close)  # before the files are closed
            self.topics.load_topics()
            upkeep = LogMaintenance(self.topics.list_all_partitions, host)
            self._close_stack.callback(upkeep.cancel_timers)
            upkeep.start_timers(
                config.log_retention_check_interval_ms,
                config.log_flush_offset_checkpoint_interval_ms,
            )
            self.coordinators = Coordinators(
                self.topics,
                config,
                self.features,
                self.clock,
                self.scheduler,
                self._background,
                self._make_id,
                partial(self.dynamic_configs.configs_of_resource, ResourceType.GROUP),
            )
            self._close_stack.callback(self.coordinators.close)
            self.services = self._create_services(storage.cluster_id)
            self.coordinators.load_shards()
            self.cleaner = LogCleaner(
                self.topics,
                config.data_dir,
                host,
                lambda: self.config,
                lambda: self.coordinators.is_loaded,
            )
            self._close_stack.callback(self.cleaner.close)
            self.cleaner.start_cleaning()
        except BaseException:
            self.close()
            raise
        self._schedule_producer_expiry()

    def _create_services(self, cluster_id: str) -> BrokerServices:
        config = self.config
        return BrokerServices(
            config=config,
            cluster_id=cluster_id,
            endpoint=self._describe_endpoint(),
            api_versions=list_api_versions(),
            clock=self.clock,
            scheduler=self.scheduler,
            features=self.features,
            dynamic_configs=self.dynamic_configs,
            topics=self.topics,
            coordinators=self.coordinators,
            fetch_sessions=FetchSessionCache(
                config.max_incremental_fetch_session_cache_slots, lambda: self._make_id().int
            ),
            request_counters=RequestCounters(),
            measure_disk_space=partial(self._disk.measure_space, config.data_dir),
        )

    def close(self) -> None:
        """Bring everything to disk, close it, and release the lock of the data directory."""
        if self._producer_expiry_timer is not None:
            self._producer_expiry_timer.cancel()
        self._close_stack.close()

    async def stop(self) -> None:
        """Stop listening, then close the data directory."""
        if self._server is not None:
            await self._server.stop()
        self.close()

    async def ensure_topics_once_names_are_free(self, topics: Mapping[str, int]) -> None:
        """Create missing topics once no group has offsets of deleted topics of their names.

        `topics` maps a name to its number of partitions. Waits for a minute at most, then raises
        what `ensure_topics` raises; or the failure for which the broker stops meanwhile.
        """
        forgetting = self.topics.forgetting
        unavailable = {name for name in topics if name in forgetting}
        all_free = asyncio.get_running_loop().create_future()

        def note_name_is_free(topic_name: str) -> None:
            unavailable.discard(topic_name)
            if not unavailable and not all_free.done():
                all_free.set_result(None)

        if unavailable:
            self.topics.when_forgotten.append(note_name_is_free)
            stopping = asyncio.ensure_future(self.wait_for_stop_request())
            await asyncio.wait(
                (all_free, stopping),
                timeout=_TOPIC_NAMES_FREE_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            stopping.cancel()
            self.topics.when_forgotten.remove(note_name_is_free)
            if self.failure is not None:
                raise self.failure
        self.ensure_topics(topics)

    def ensure_topics(self, topics: Mapping[str, int]) -> None:
        """Create the topics that don't exist, with the given numbers of partitions.

        Raises: Refused, TOPIC_ALREADY_EXISTS if groups still have offsets of a deleted topic.
        """
        for name, partitions in topics.items():
            if self.topics.get(name) is None:
                self.topics.create_topic(name, partitions)

    def request_stop(self) -> None:
        self._stop_requested.set()

    async def wait_for_stop_request(self) -> None:
        """Wait until somebody has requested that the broker stops."""
        await self._stop_requested.wait()

    def _apply_dynamic_configs(self) -> None:
        self.config = self.services.config = self.dynamic_configs.effective_config()
        self.topics.apply_broker_config(self.config)
        self.coordinators.update_config(self.config)

    def _schedule_producer_expiry(self) -> None:
        self._producer_expiry_timer = self.scheduler.call_later(
            self.config.producer_id_expiration_check_interval_ms, self._expire_producer_ids
        )

    def _expire_producer_ids(self) -> None:
        now_ms, idle_ms = self.clock.now_ms(), self.config.producer_id_expiration_ms
        for partition in self.topics.list_all_partitions():
            self._expired_producer_count += partition.producers.forget_idle_producers(
                now_ms, idle_ms
            )
        self._schedule_producer_expiry()
