"""Replicate global tables: each worker copies all partitions of a topic, to look rows up.

One thread of the worker copies what is committed, as it comes; the stream threads begin when all is
there that was there at the start, and read without waiting from then on. So what a record finds
depends on when it is processed, as in Kafka Streams: a global table takes part in no transaction.

A copy on disk goes on where it stopped. It is made anew where it may have missed writes, by a
store's rules (`changelogs.changelog`): a topic that is compacted forgets deletions.
Where the topic is made again while it is copied, nothing of the new one is copied, and the worker
ends: a table that is copied anew beside tasks that read it would miss rows.
Source: GlobalStreamThread, GlobalStateManagerImpl.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from state.errors import StoreCorrupted
from state.replica import TopicReplica
from state.store_checkpoint import StoreCheckpoint
from streams.common.host import Event, Host
from streams.common.topic_id_hashes import hash_topic_ids
from streams.common.topic_partitions import Partition
from streams.connection.current import CurrentSecurity
from streams.connection.security import PLAINTEXT
from streams.errors import BrokerUnavailable, OutcomeUnknown, StreamsError
from streams.graph.nodes import GlobalTableSpec
from streams.membership.broker_outage import IsOverdue, create_overdue_check
from streams.processor.global_store import ReadOnlyGlobalStore
from streams.runtime.changelogs.changelog import (
    ChangelogRange,
    find_restore_start,
    tombstone_retention_ms,
)
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient
from streams.runtime.global_tables.added_partitions import AddedPartitionCheck
from streams.runtime.global_tables.cleanup_policy import CleanupPolicyCheck
from streams.runtime.global_tables.copied_records import RecordCopier
from streams.runtime.offsets.topic_ids import TopicIdCheck, fetch_topic_id_hashes

log = logging.getLogger(__name__)

_RECORDS_MAX, _WAIT_S, _RETRY_S, _REPORT_EVERY_S = 10_000, 0.1, 0.2, 5.0


class GlobalTables:
    """Copies the topics of one worker's global tables into replicas.

    `replicas` are by the name of their store: opened, and closed when nobody reads them any more,
    by the caller. `copier` converts records, and decides about those that can't be read.
    `timeout_ms` is how long copying may make no progress at the start, by `is_overdue`. `security`
    is that of `admin` and of the consumer that `create_consumer` creates. The ids of the topics are
    fetched again every `topic_check_ms`, and so are the numbers of their partitions.
    """

    def __init__(
        self,
        tables: Sequence[GlobalTableSpec],
        replicas: Mapping[str, TopicReplica],
        *,
        create_consumer: Callable[[], ConsumerClient],
        copier: RecordCopier,
        admin: AdminClient,
        host: Host,
        timeout_ms: int = 300_000,
        is_overdue: IsOverdue | None = None,
        topic_check_ms: int = 300_000,
        security: CurrentSecurity | None = None,
    ) -> None:
        self._security = security or CurrentSecurity(PLAINTEXT)
        self._security_version = self._security.version
        self._tables = {table.topic: table for table in tables}
        self._replicas = replicas
        self._create_consumer = create_consumer
        self._consumer: ConsumerClient | None = None
        self._admin = admin
        self._host = host
        self._copier = copier
        self._timeout_s = timeout_ms / 1000
        self._is_overdue = is_overdue or create_overdue_check(host)
        self._checkpoints: dict[str, StoreCheckpoint] = {}
        self._topic_ids: Mapping[str, int] = {}
        """The hash of the id of each topic when copying began."""
        self._topic_id_check = TopicIdCheck(
            partial(fetch_topic_id_hashes, admin),
            host.monotonic_s,
            interval_s=topic_check_ms / 1000,
            on_change=self._refuse_topics_made_again,
        )
        self._added_partition_check = AddedPartitionCheck(
            admin.fetch_partition_counts, host.monotonic_s, topic_check_ms / 1000
        )
        self._cleanup_policy_check = CleanupPolicyCheck(tables, admin, host, topic_check_ms / 1000)
        self._caught_up = host.create_event()
        self._stop = host.create_event()
        self.copied_records = 0
        """The number of records copied since the start, those that were skipped included."""

    @property
    def replicas(self) -> Mapping[str, TopicReplica]:
        """Return the replicas by the names of their stores; each task opens views of its own."""
        return self._replicas

    def find_read_only_store(self, store_name: str) -> ReadOnlyGlobalStore[Any, Any] | None:
        """Return a view of a table for one thread to read; None if there is no such table."""
        return (
            ReadOnlyGlobalStore(store_name, self._replicas[store_name].open_view())
            if store_name in self._replicas
            else None
        )

    def wait_until_caught_up(self, stop: Event) -> bool:
        """Wait until all tables have caught up with their topics; return False on a stop."""
        while not self._caught_up.wait(_WAIT_S):
            if stop.is_set():
                return False
        return True

    def copy_until_stopped(self, stop: Event) -> None:
        """Copy the topics until `stop` is set.

        Raises: StreamsError where a topic can't be read or is not what it was, StateError where a
        copy can't be written, AuthenticationError where brokers refuse the security before all
        tables have caught up. Later the stream threads end, or are replaced, for a refusal.
        """
        if not self._tables:
            self._caught_up.set()
            return
        try:
            self.copy_existing_records(stop)
            while not stop.is_set():
                self.copy_new_records()
        finally:
            self.stop_copying()

    def count_failures(self) -> dict[str, int]:
        """Count the records dropped and the dead letters written since the start."""
        counters = self._copier.counters
        return {"dropped": counters.dropped, "dead_letters": counters.dead_letters}

    def copy_existing_records(self, stop: Event) -> None:
        """Assign all partitions, and copy records until they have caught up or `stop` is set."""
        self._stop = stop
        self._consumer = self._create_consumer()
        self._assign_partitions(self._consumer, stop)
        self._copy_until_caught_up(self._consumer, stop)

    def copy_new_records(self) -> None:
        """Copy the records written since the last call, after a short wait if there are none."""
        assert self._consumer is not None, "nothing was begun"
        self._renew_clients_if_security_replaced(self._consumer)
        self._copy_added_partitions(self._consumer)
        self._cleanup_policy_check.warn_if_due()
        self._poll_check_and_copy_records(self._consumer)
        self._copier.poll_delivery_reports()
        self._check_positions_in_range(self._consumer)

    def _copy_added_partitions(self, consumer: ConsumerClient) -> None:
        """Copy partitions that were added to a topic meanwhile, from their beginning."""
        known = {topic: len(each.positions) for topic, each in self._checkpoints.items()}
        for topic, count in self._added_partition_check.find_grown_topics_if_due(known).items():
            previous, new = self._checkpoints[topic], range(known[topic], count)
            consumer.add_partitions({Partition(topic, number): 0 for number in new})
            positions = (*previous.positions, *(0 for _ in new))
            self._checkpoints[topic] = replace(previous, positions=positions)
            log.warning("topic %r of a global table has %d partitions more", topic, len(new))

    def _renew_clients_if_security_replaced(self, consumer: ConsumerClient) -> None:
        """Renew the clients if the security was replaced since they were created."""
        version = self._security.version
        if version == self._security_version:
            return
        settings = self._security.value.build_librdkafka_settings()
        self._admin.renew_client(settings)
        consumer.renew_client(settings)
        self._copier.discard_producer()
        self._security_version = version
        log.info("global tables go on with new connections")

    def stop_copying(self) -> None:
        """Stop copying and close the consumer; the replicas stay open for readers."""
        self._copier.close_processors()
        self._copier.discard_producer()
        if self._consumer is not None:
            self._consumer.close()

    def _assign_partitions(self, consumer: ConsumerClient, stop: Event) -> None:
        """Assign all partitions to the consumer, from the offsets at which the replicas go on."""
        began_at_s = self._host.monotonic_s()
        while not stop.is_set():
            self._security.require_accepted()
            self._renew_clients_if_security_replaced(consumer)
            try:
                changelogs = self._fetch_ranges()
                break
            except OutcomeUnknown as error:
                self._security.note_client_error()  # an admin client tells of none by itself
                if self._is_overdue(began_at_s, self._timeout_s):
                    raise BrokerUnavailable(
                        f"no answer for {self._timeout_s:g} s: {error}"
                    ) from error
                stop.wait(_RETRY_S)
        else:
            return
        self._topic_ids = hash_topic_ids(
            {topic: parts[0].topic_id for topic, parts in changelogs.items()}
        )
        for table in self._tables.values():
            consumer.add_partitions(self._prepare_replica(table, changelogs[table.topic]))

    def _fetch_ranges(self) -> dict[str, list[ChangelogRange]]:
        """Fetch the offset range of every partition of every topic, in order of the partitions."""
        counts = self._admin.fetch_partition_counts()
        if missing := sorted(self._tables.keys() - counts.keys()):
            self._admin.check_topic_rights(dict.fromkeys(missing, ("Read",)))
            raise StreamsError(f"topics {missing} of global tables do not exist: create them")
        topics = list(self._tables)
        partitions = [Partition(topic, n) for topic in topics for n in range(counts[topic])]
        now_ms = self._host.now_ms()
        ends, starts = (
            self._admin.fetch_latest_offsets(partitions),
            self._admin.fetch_earliest_offsets(partitions),
        )
        ids, settings = (
            self._admin.fetch_topic_ids(topics),
            self._admin.fetch_topic_settings(topics),
        )
        ranges: dict[str, list[ChangelogRange]] = {topic: [] for topic in topics}
        for p in partitions:
            retention_ms = tombstone_retention_ms(settings[p.topic])
            ranges[p.topic].append(
                ChangelogRange(p, starts[p], ends[p], ids[p.topic], retention_ms, now_ms)
            )
        return ranges

    def _prepare_replica(
        self, table: GlobalTableSpec, ranges: list[ChangelogRange]
    ) -> dict[Partition, int]:
        """Return the offsets at which a table's replica goes on; clear one that can't be trusted.

        A replica that was cleared goes on from the start of its topic.
        """
        replica = self._replicas[table.store.name]
        try:
            checkpoint = replica.read_checkpoint()
        except StoreCorrupted as damage:
            log.warning("global table %r is copied anew: %s", table.store.name, damage)
            replica.clear_all_data()
            checkpoint = None
        restore_starts = []
        for number, part in enumerate(ranges):
            own_checkpoint = checkpoint
            if checkpoint is not None and number < len(checkpoint.positions):
                own_checkpoint = StoreCheckpoint(
                    checkpoint.positions[number], checkpoint.topic_id, checkpoint.written_ms
                )
            elif checkpoint is not None:
                own_checkpoint = None  # a partition that is new
            restore_starts.append(
                find_restore_start(
                    table.store.name,
                    own_checkpoint,
                    part,
                    required_offset=0,
                    is_transactional=False,
                )
            )
        reason = next(
            (begin.rebuild_reason for begin in restore_starts if begin.rebuild_reason is not None),
            None,
        )
        if reason is not None:
            log.warning("global table %r is copied anew: %s", table.store.name, reason)
            replica.clear_all_data()
        starts = [
            part.start_offset if reason is not None else begin.position
            for part, begin in zip(ranges, restore_starts, strict=True)
        ]
        since_ms = min((begin.since_ms for begin in restore_starts), default=0)
        self._checkpoints[table.topic] = StoreCheckpoint(
            0, ranges[0].topic_id, since_ms, positions=tuple(starts)
        )
        return {part.partition: at for part, at in zip(ranges, starts, strict=True)}

    def _copy_until_caught_up(self, consumer: ConsumerClient, stop: Event) -> None:
        """Copy records until no partition has a lag, and raise BrokerUnavailable if that stalls."""
        began_s = progressed_at_s = logged_at_s = self._host.monotonic_s()
        while not stop.is_set():
            self._security.require_accepted()
            self._renew_clients_if_security_replaced(consumer)
            now_s = self._host.monotonic_s()
            if self._poll_check_and_copy_records(consumer):
                progressed_at_s = now_s
            if stop.is_set():
                return
            self._check_positions_in_range(consumer)
            lags = self._measure_lags(consumer)
            if all(lag == 0 for lag in lags):
                self._write_checkpoint_times()
                told = self._copier.describe_copied_and_skipped_counts(self.copied_records)
                log.info("global tables are there: %s in %.1f s", told, now_s - began_s)
                self._caught_up.set()
                return
            if now_s - logged_at_s > _REPORT_EVERY_S:
                logged_at_s = now_s
                log.info("global tables: %d records copied, lags %s", self.copied_records, lags)
            if self._is_overdue(progressed_at_s, self._timeout_s):
                raise BrokerUnavailable(
                    f"the global tables of {sorted(self._tables)} have stood still for "
                    f"{self._timeout_s:g} s, with lags {lags}"
                )

    def _measure_lags(self, consumer: ConsumerClient) -> list[int | None]:
        """Return the lag of each partition; the last one is None if it is unknown.

        The others are not asked for then: where no broker answers, each would wait for it again.
        """
        lags: list[int | None] = []
        for topic, checkpoint in self._checkpoints.items():
            for number in range(len(checkpoint.positions)):
                lags.append(consumer.measure_lag(Partition(topic, number)))
                if lags[-1] is None:
                    return lags
        return lags

    def _write_checkpoint_times(self) -> None:
        """Write each replica's checkpoint with the present time, as it has caught up.

        Tombstones that come from now on are younger than this.
        """
        now_ms = self._host.now_ms()
        for topic, previous in self._checkpoints.items():
            checkpoint = StoreCheckpoint(0, previous.topic_id, now_ms, positions=previous.positions)
            self._replicas[self._tables[topic].store.name].write_copied_records((), checkpoint)
            self._checkpoints[topic] = checkpoint

    def _poll_check_and_copy_records(self, consumer: ConsumerClient) -> int:
        """Poll records, copy them into the replicas, and return how many were polled.

        Raises: StreamsError where a topic was made again, before anything of the new one is copied.
        """
        messages = consumer.poll_records(_RECORDS_MAX, _WAIT_S)
        self._topic_id_check.check_topics(consumer, lambda: [self._topic_ids])
        self._topic_id_check.check_if_due([self._topic_ids])
        by_topic: dict[str, list[Any]] = {}
        for message in messages:
            by_topic.setdefault(message.topic(), []).append(message)
        for topic, mine in by_topic.items():
            self._copy_messages(topic, mine)
        self.copied_records += len(messages)
        return len(messages)

    def _copy_messages(self, topic: str, messages: list[Any]) -> None:
        """Write a topic's records into its replica, with a checkpoint after the last.

        Nothing is written where the stop comes before brokers have the records' dead letters.
        """
        table = self._tables[topic]
        replica = self._replicas[table.store.name]
        copied_records = self._copier.convert_records(table, replica, messages, self._stop)
        if copied_records is None:
            return
        previous = self._checkpoints[topic]
        positions = list(previous.positions)
        for message in messages:
            positions[message.partition()] = message.offset() + 1
        written_ms = self._host.now_ms() if self._caught_up.is_set() else previous.written_ms
        checkpoint = StoreCheckpoint(0, previous.topic_id, written_ms, positions=tuple(positions))
        replica.write_copied_records(copied_records, checkpoint)
        self._checkpoints[topic] = checkpoint

    def _check_positions_in_range(self, consumer: ConsumerClient) -> None:
        """Raise StreamsError if a position is out of range, so that the replicas are made anew.

        The topic was cut or made again. The worker starts over, and copies it.
        """
        if lost := consumer.pop_out_of_range_positions():
            with suppress(OutcomeUnknown):
                self._topic_id_check.check_now([self._topic_ids])
            each = (f"{partition} has lost the position of its copy" for partition in lost)
            raise StreamsError(
                f"global tables: {', '.join(each)}: the topic was cut or made again. Start again, "
                "and it is copied anew"
            )

    def _refuse_topics_made_again(self, topics: Collection[str]) -> None:
        """Raise StreamsError: these topics are others than those that were copied."""
        names = ", ".join(f"topic {t!r} of {self._tables[t].store.name!r}" for t in sorted(topics))
        raise StreamsError(
            f"global tables: {names} is another topic of the same name than the one that was "
            "copied: it was deleted and created again. Nothing of the new one was copied. Start "
            "again, and it is copied anew, before a record is processed"
        )
