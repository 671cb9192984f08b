"""Find out whether partitions hold a committed record, for a task that is about to start.

Offsets alone don't tell: markers and aborted records have offsets, too. So the first committed
record is read, if there is one, with a consumer that is closed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from streams.common.host import Host
from streams.common.topic_partitions import Partition
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient

_NO_OFFSETS: Mapping[Partition, int] = MappingProxyType({})
_POLL_WAIT_S = 0.05
_TIME_MAX_S = 2.0
"""How long one search may keep its thread, which has tasks that run."""


class CommittedRecordSearch:
    """Looks for committed records; `create_consumer` creates a consumer that reads these alone."""

    def __init__(
        self, admin: AdminClient, create_consumer: Callable[[], ConsumerClient], host: Host
    ) -> None:
        self._admin = admin
        self._create_consumer = create_consumer
        self._host = host

    def probe_for_committed_record(
        self, partitions: Sequence[Partition], from_offsets: Mapping[Partition, int] = _NO_OFFSETS
    ) -> bool | None:
        """Return whether a partition holds a committed record below its last stable offset.

        Records below `from_offsets` do not count.

        Returns None if that is not known after two seconds; it is to be asked again then. Raises
        OutcomeUnknown where no broker answers.
        """
        starts = {
            p: max(start, from_offsets.get(p, 0))
            for p, start in self._admin.fetch_earliest_offsets(partitions).items()
        }
        ends = self._admin.fetch_last_stable_offsets(partitions)
        unread = {p: end for p, end in ends.items() if starts[p] < end}
        if not unread:
            return False
        consumer = self._create_consumer()
        try:
            consumer.add_partitions({p: starts[p] for p in unread})
            deadline_s = self._host.monotonic_s() + _TIME_MAX_S
            while self._host.monotonic_s() < deadline_s:
                if consumer.poll_records(1, _POLL_WAIT_S):
                    return True
                if consumer.pop_out_of_range_positions():
                    return None  # its first records were deleted meanwhile
                positions = consumer.next_offsets(unread)
                unread = {p: end for p, end in unread.items() if positions.get(p, 0) < end}
                if not unread:
                    return False
        finally:
            consumer.close()
        return None
