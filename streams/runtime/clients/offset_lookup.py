"""Look up offsets of partitions: their first and last ones, and those of a time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.clients.admin_calls import AdminCalls
from streams.runtime.clients.admin_requests import Right
from streams.runtime.clients.errors import NotReady

_ATTEMPTS = 2
_REQUEST_MIN_S = 0.5
"""The least time-out of a request, and how much longer its result is waited for, in seconds."""


class OffsetLookup(AdminCalls):
    """Looks up offsets of partitions, which the leader of each is asked for."""

    def fetch_earliest_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Return the first offset of each partition that can be read."""
        return self._read_with_new_clients(
            lambda wait_s: self._fetch_spec_offsets(
                partitions, OffsetSpec.earliest(), timeout_s=wait_s
            )
        )

    def fetch_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float = math.inf
    ) -> dict[Partition, int]:
        """Return the high watermark of each partition, in one request.

        It is above every record, those of open transactions included. Raises OutcomeUnknown if
        brokers don't answer within `timeout_s`.
        """
        return self._read_with_new_clients(
            lambda wait_s: self._fetch_spec_offsets(
                partitions, OffsetSpec.latest(), timeout_s=wait_s
            ),
            timeout_s,
        )

    def fetch_available_latest_offsets(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> dict[Partition, int]:
        """Return the high watermark of each partition whose leader answers within `timeout_s`.

        Those that have no leader at the moment are left out: librdkafka asks nobody before it has
        found the leaders of all. Another leader than the client knew is found by a second attempt.
        Raises OutcomeUnknown if no broker answers.
        """
        return self._fetch_available_offsets(partitions, timeout_s, IsolationLevel.READ_UNCOMMITTED)

    def fetch_available_last_stable_offsets(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> dict[Partition, int]:
        """Return the last stable offset of each partition whose leader answers within `timeout_s`.

        Those that have no leader at the moment are left out. Raises OutcomeUnknown if no broker
        answers.
        """
        return self._fetch_available_offsets(partitions, timeout_s, IsolationLevel.READ_COMMITTED)

    def _fetch_available_offsets(
        self, partitions: Sequence[Partition], timeout_s: float, isolation: IsolationLevel
    ) -> dict[Partition, int]:
        """Fetch the ends of the partitions whose leaders answer, by two attempts."""
        known: dict[Partition, int] = {}
        deadline_s = time.monotonic() + timeout_s
        for _ in range(_ATTEMPTS):
            left_s = max(deadline_s - time.monotonic(), _REQUEST_MIN_S)
            unknown = [each for each in partitions if each not in known]
            if not unknown:
                break
            try:
                asked = self._leave_out_leaderless(unknown, left_s)
            except OutcomeUnknown:
                if not known:
                    raise
                break  # what the first attempt has found is enough
            left_s = max(deadline_s - time.monotonic(), _REQUEST_MIN_S)
            known |= self._request_available_offsets(asked, left_s, isolation)
        return known

    def _leave_out_leaderless(
        self, partitions: Sequence[Partition], timeout_s: float
    ) -> list[Partition]:
        """Return the partitions without those for which brokers list no leader."""
        topics = self._list_topics(timeout_s=timeout_s).topics
        return [
            each
            for each in partitions
            if each.topic in topics
            and each.number in topics[each.topic].partitions
            and topics[each.topic].partitions[each.number].leader >= 0
        ]

    def _request_available_offsets(
        self, partitions: Sequence[Partition], timeout_s: float, isolation: IsolationLevel
    ) -> dict[Partition, int]:
        """Ask for the ends of partitions; replace the client if one of them is not answered."""
        if not partitions:
            return {}
        known = {}
        futures = self._admin.list_offsets(
            {TopicPartition(*each): OffsetSpec.latest() for each in partitions},
            isolation_level=isolation,
            request_timeout=timeout_s,
        )
        for asked, future in futures.items():
            partition = Partition(asked.topic, asked.partition)
            with suppress(OutcomeUnknown):
                right = Right("Read", asked.topic)
                found = self._wait_for_result(
                    future, f"offset of {partition}", right, timeout_s=timeout_s + _REQUEST_MIN_S
                )
                if found.offset >= 0:
                    known[partition] = int(found.offset)
        if len(known) < len(partitions):
            self._recreate_client()
        return known

    def fetch_last_stable_offsets(
        self, partitions: Sequence[Partition], timeout_s: float = math.inf
    ) -> dict[Partition, int]:
        """Return the last stable offset of each partition: below it, no transaction is open."""
        return self._read_with_new_clients(
            lambda wait_s: self._fetch_spec_offsets(
                partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED, wait_s
            ),
            timeout_s,
        )

    def fetch_offsets_for_time(
        self, partitions: Sequence[Partition], timestamp_ms: int
    ) -> dict[Partition, int]:
        """Return the offset of each partition's first record with this timestamp or a later one.

        It is the end of the partition where all records are older.
        """
        return self._read_with_new_clients(
            lambda wait_s: self._fetch_time_offsets(partitions, timestamp_ms, wait_s)
        )

    def _fetch_time_offsets(
        self, partitions: Sequence[Partition], timestamp_ms: int, timeout_s: float
    ) -> dict[Partition, int]:
        specs = {p: OffsetSpec.for_timestamp(timestamp_ms) for p in partitions}
        found = self._request_offsets(specs, timeout_s=timeout_s)
        offsets = {p: answer.offset for p, answer in found.items()}
        older = [partition for partition, offset in offsets.items() if offset < 0]
        if not older:
            return offsets
        # A negative offset means no such record, or no answer (see `_fetch_spec_offsets`): to take
        # the second for the first would skip all records.
        ends = self._fetch_spec_offsets(older, OffsetSpec.latest(), timeout_s=timeout_s)
        starts = self._fetch_spec_offsets(older, OffsetSpec.earliest(), timeout_s=timeout_s)
        latest = {p: OffsetSpec.max_timestamp() for p in older}
        newest = self._request_offsets(latest, timeout_s=timeout_s)
        for partition, answer in newest.items():
            is_empty = starts[partition] == ends[partition]
            if answer.timestamp >= timestamp_ms or (answer.offset < 0 and not is_empty):
                raise NotReady(f"offset of {partition} by time: no answer")
        return offsets | ends

    def _fetch_spec_offsets(
        self,
        partitions: Sequence[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_s: float = math.inf,
    ) -> dict[Partition, int]:
        specs = dict.fromkeys(partitions, spec)
        results = self._request_offsets(specs, isolation, timeout_s)
        for partition, result in results.items():
            if result.offset < 0:
                # librdkafka 2.16 returns this, without an error, when the connection was cut.
                self._recreate_client()
                raise NotReady(f"offset of {partition}: no answer")
        return {partition: result.offset for partition, result in results.items()}

    def _request_offsets(
        self,
        specs: Mapping[Partition, OffsetSpec],
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_s: float = math.inf,
    ) -> dict[Partition, Any]:
        if not specs:
            return {}
        futures = self._admin.list_offsets(
            {TopicPartition(*partition): spec for partition, spec in specs.items()},
            isolation_level=isolation,
        )
        return {
            Partition(a.topic, a.partition): self._wait_for_result(
                future,
                f"offset of {a.topic}[{a.partition}]",
                Right("Read", a.topic),
                timeout_s=min(self._timeout_s, timeout_s),
            )
            for a, future in futures.items()
        }
