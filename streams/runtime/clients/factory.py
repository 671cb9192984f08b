"""Create the clients of one application, with the settings that the guarantee needs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from streams.common.topic_partitions import Partition
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.runtime.clients.admin import Admin
from streams.runtime.clients.client_statistics import ClientStatisticsRecorder
from streams.runtime.clients.cluster_admin import ClusterAdmin
from streams.runtime.clients.consumer import DataConsumer
from streams.runtime.clients.errors import create_client
from streams.runtime.clients.missing_topics import InternalKind
from streams.runtime.clients.moved_coordinator import GetCoordinatorAddress, find_no_address
from streams.runtime.clients.producer import StreamsProducer
from streams.runtime.clients.stalled_reads import StalledReadCheck
from streams.runtime.clients.topic_reader import TopicRecordReader

if TYPE_CHECKING:
    from streams.settings.config import StreamsConfig

_RESTORE_FETCH_SETTINGS = {
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 5,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "max.partition.fetch.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
}
"""Settings of the restore consumer. What it fetches ahead is bounded for all of its partitions
together."""
_STANDBY_FETCH_SETTINGS = {
    "fetch.wait.max.ms": 500,
    "fetch.queue.backoff.ms": 20,
    "queued.max.messages.kbytes": 8 << 10,
}
"""Settings of the consumer that follows changelogs: it waits for new records without haste, for as
long as the worker runs."""

_LOOK_TIMEOUT_S = 2.0
"""For how long the thread of a consumer that polls nothing may wait for what there is to read."""
_BATCH_SIZE_DEFAULT = 1_000_000
"""librdkafka's default of `batch.size`, in bytes."""
_METADATA_REFRESH_MS_MAX = 3_600_000
"""librdkafka's limit of `topic.metadata.refresh.interval.ms`."""
_SOCKET_TIMEOUT_MS_MIN, _SOCKET_TIMEOUT_MS_MAX = 2_000, 300_000
"""The bounds of `socket.timeout.ms` for librdkafka: a second more than the longest fetch, at most
five minutes."""

_RECONNECT_BACKOFF_MS_MAX = 1_000
"""The default of Kafka's clients (KIP-144). librdkafka's is ten times as long: a broker that is
back after two seconds would not be tried again for up to ten (decision 121)."""
_BACKOFF_MS_LIMIT = 3_600_000
"""librdkafka's limit of `reconnect.backoff.ms` and of `reconnect.backoff.max.ms`."""


class KafkaClientSupplier:
    """Creates the clients of one application (Kafka Streams' KafkaClientSupplier).

    Each is created with the security of that moment, and tells it about its errors.
    """

    def __init__(
        self,
        application_id: str,
        config: StreamsConfig,
        bootstrap_servers: str,
        security: CurrentSecurity | None = None,
        internal_topics: Mapping[str, InternalKind] | None = None,
    ) -> None:
        self.security = security or CurrentSecurity(PLAINTEXT)
        self._application_id = application_id
        self._internal_topics = internal_topics or {}
        self._config = config
        self._rack_settings = {"client.rack": config.client_rack} if config.client_rack else {}
        self.statistics = ClientStatisticsRecorder()
        self.bootstrap_servers = bootstrap_servers
        self._timeout_s = config.request_timeout_ms / 1000
        # librdkafka refuses a first wait above the longest one.
        self._reconnect_backoff_ms = max(
            _parse_backoff_ms(each.get("reconnect.backoff.ms"))
            for each in (
                config.consumer,
                config.main_consumer,
                config.restore_consumer,
                config.global_consumer,
                config.producer,
            )
        )
        # Bounds a fetch that nobody answers: with librdkafka's default no input comes for a minute.
        self._socket_timeout_ms = min(
            max(config.request_timeout_ms, _SOCKET_TIMEOUT_MS_MIN), _SOCKET_TIMEOUT_MS_MAX
        )

    def create_admin(self, timeout_s: float = math.inf, retry_s: float = 0.0) -> Admin:
        """Create an admin client that waits for an answer at most `timeout_s`.

        `request_timeout_ms` is the upper bound. A request that brokers can't answer at the moment
        is retried for `retry_s`.
        """
        timeout_s = min(timeout_s, self._timeout_s)
        return Admin(self._common_settings("admin"), self.bootstrap_servers, timeout_s, retry_s)

    def create_cluster_admin(self, timeout_s: float) -> ClusterAdmin:
        """Create a client that administers topics and groups."""
        return ClusterAdmin(self._common_settings("cluster-admin"), timeout_s)

    def create_topic_reader(self, *, committed_only: bool) -> TopicRecordReader:
        """Create a reader of topics; without `committed_only` records of open transactions too."""
        settings = {
            "group.id": self._application_id,
            **self._common_settings("reader"),
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
        }
        return TopicRecordReader(settings, self._timeout_s)

    def _statistics_settings(self, name: str) -> dict[str, Any]:
        """Return the settings with which a client that is polled always tells its statistics.

        Those of another one would wait in memory. Nobody asks for them without a port.
        """
        if self._config.health_port is None and self._config.metrics_port is None:
            return {}
        return self.statistics.create_client_settings(f"{self._application_id}-{name}")

    def create_consumer(self, name: str) -> DataConsumer:
        """Create a consumer of committed records.

        An offset out of range is an error, and not a reset.
        """
        return DataConsumer(
            {
                "fetch.queue.backoff.ms": 5,
                # A partition that is added waits for the fetch that is in progress.
                "fetch.wait.max.ms": 100,
                # Small enough that the partitions take turns (decision 41).
                "max.partition.fetch.bytes": 256 << 10,
                # Records of all partitions together; much less, and they take no turns.
                "queued.min.messages": 80_000,
                "socket.timeout.ms": self._socket_timeout_ms,
                **self._statistics_settings(name),
                **self._common_settings(name),
                **self._rack_settings,
                **self._config.consumer,
                **self._config.main_consumer,
                **self._read_committed_settings(),
            },
            self.security.note_client_error,
            watch_topic_ids=True,
            stalled_reads=self._create_stalled_read_check(),
        )

    def create_restore_consumer(self, name: str) -> DataConsumer:
        """Create a consumer that reads changelogs in bulk.

        Its fetches are large, and none waits for long: while one waits, for an open transaction to
        end, no partition that is added meanwhile is read.
        """
        return self._create_bulk_consumer(name, self._config.restore_consumer)

    def create_global_consumer(self, name: str) -> DataConsumer:
        """Create a consumer that reads topics of global tables in bulk, and notes their ids."""
        return self._create_bulk_consumer(name, self._config.global_consumer, watch_topic_ids=True)

    def _create_bulk_consumer(
        self, name: str, own_settings: Mapping[str, Any], *, watch_topic_ids: bool = False
    ) -> DataConsumer:
        """Create a consumer of large fetches, whose `own_settings` go over those of all."""
        return DataConsumer(
            {
                "socket.timeout.ms": self._socket_timeout_ms,
                **(self._statistics_settings(name) if watch_topic_ids else {}),
                **self._common_settings(name),
                **self._rack_settings,
                **self._config.consumer,
                **_RESTORE_FETCH_SETTINGS,
                **own_settings,
                **self._read_committed_settings(),
            },
            self.security.note_client_error,
            watch_topic_ids=watch_topic_ids,
            stalled_reads=self._create_stalled_read_check(),
        )

    def create_standby_consumer(self, name: str) -> DataConsumer:
        """Create a consumer that follows the changelogs of standby tasks."""
        return DataConsumer(
            {
                "socket.timeout.ms": self._socket_timeout_ms,
                **self._common_settings(name),
                **self._rack_settings,
                **self._config.consumer,
                **_STANDBY_FETCH_SETTINGS,
                **self._config.restore_consumer,
                **self._read_committed_settings(),
            },
            self.security.note_client_error,
            stalled_reads=self._create_stalled_read_check(),
        )

    def _create_stalled_read_check(self) -> StalledReadCheck:
        """Create the check whether one consumer has stalled, by a new client at each look.

        A client that lives on might have lost its brokers as the consumer has.
        """

        def fetch_stable_offsets(partitions: Collection[Partition]) -> Mapping[Partition, int]:
            admin = self.create_admin(_LOOK_TIMEOUT_S)
            return admin.fetch_available_last_stable_offsets(list(partitions), _LOOK_TIMEOUT_S)

        return StalledReadCheck(fetch_stable_offsets)

    def _read_committed_settings(self) -> dict[str, Any]:
        """Return the settings that make a consumer read committed records and commit nothing."""
        return {
            "group.id": self._application_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }

    def create_producer(
        self,
        transactional_id: str,
        require_wanted: Callable[[], None] | None = None,
        batch_bytes_max: int | None = None,
        get_coordinator_address: GetCoordinatorAddress = find_no_address,
    ) -> StreamsProducer:
        """Create a producer; a transactional one has fenced its predecessor when this returns.

        `require_wanted` is called several times a second until then; what it raises ends the call.
        Batches of several records have at most `batch_bytes_max` bytes. `get_coordinator_address`
        tells where the coordinator is of the group whose offsets it sends.
        """
        security = self.security
        # Read before the settings, so that these are of this version or a later one.
        require_usable = partial(security.require_usable, security.version)
        settings = self._producer_settings(
            transactional_id, transactional=self._config.exactly_once
        )
        if batch_bytes_max is not None:
            largest = int(settings.get("batch.size", _BATCH_SIZE_DEFAULT))
            settings["batch.size"] = max(1, min(largest, batch_bytes_max))
        return StreamsProducer(
            transactional_id,
            settings,
            transactional=self._config.exactly_once,
            timeout_s=self._timeout_s,
            track_deliveries=self._config.ledger,
            on_error=security.note_client_error,
            # Without settings of a connection there is nothing that brokers could refuse.
            require_usable=require_usable if security.value.settings else None,
            require_wanted=require_wanted,
            internal_topics=self._internal_topics,
            get_coordinator_address=get_coordinator_address,
        )

    def create_plain_producer(self, name: str, timeout_s: float) -> StreamsProducer:
        """Create a producer without transactions, each call of which waits at most `timeout_s`."""
        security = self.security
        require_usable = partial(security.require_usable, security.version)
        return StreamsProducer(
            name,
            self._producer_settings(name, transactional=False),
            transactional=False,
            timeout_s=min(timeout_s, self._timeout_s),
            on_error=security.note_client_error,
            require_usable=require_usable if security.value.settings else None,
        )

    def check_user_settings(self) -> None:
        """Raise ConfigError for a setting of the user's that librdkafka doesn't take."""
        self.create_consumer("check").close()
        self.create_restore_consumer("check").close()
        self.create_global_consumer("check").close()
        transactional = self._config.exactly_once
        settings = self._producer_settings("check", transactional=transactional)
        create_client("producer", Producer, settings)

    def _producer_settings(self, name: str, *, transactional: bool) -> dict[str, Any]:
        """Return the settings of a producer, whose `name` is its transactional id if it has one."""
        settings: dict[str, Any] = {
            "linger.ms": 5,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            # A topic that was deleted would be created again, with the brokers' defaults.
            "allow.auto.create.topics": False,
            # A topic that was made again is seen by then at the latest.
            "topic.metadata.refresh.interval.ms": min(
                self._config.metadata_max_age_ms, _METADATA_REFRESH_MS_MAX
            ),
            **self._statistics_settings(name),
            **self._common_settings(name),
            **self._config.producer,
            "partitioner": "murmur2_random",
            "enable.idempotence": True,
        }
        if transactional:
            # See docs/decisions/0001: with librdkafka's default a transaction hangs when all
            # brokers were away for a moment.
            settings.setdefault("metadata.recovery.strategy", "none")
            settings["transactional.id"] = name
            settings["transaction.timeout.ms"] = self._config.transaction_timeout_ms
        else:
            settings["delivery.report.only.error"] = True
        return settings

    def _common_settings(self, name: str) -> dict[str, Any]:
        """Return the settings that all clients have, with `name` in the client id."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "client.id": f"{self._application_id}-{name}",
            "reconnect.backoff.max.ms": max(_RECONNECT_BACKOFF_MS_MAX, self._reconnect_backoff_ms),
            **self.security.value.build_librdkafka_settings(),
        }


def _parse_backoff_ms(setting: object) -> int:
    """Return the first wait that a user has set, in ms; 0 for none that librdkafka would take.

    That is refused with the setting's name when a client is created. Of a number librdkafka reads
    the digits that it begins with.
    """
    digits = re.match(r"\+?([0-9]{1,8})(?![0-9])", str(setting))
    backoff_ms = int(digits[1]) if digits else 0
    return backoff_ms if backoff_ms <= _BACKOFF_MS_LIMIT else 0
