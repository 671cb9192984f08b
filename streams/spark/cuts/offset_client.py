"""Ask the brokers for the committed offsets and partition ends that make up a cut.

Each request is sent again until it is answered or the time limit is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import ConfigError, OutcomeUnknown, UserError
from streams.membership.connection import ConnectionLost, find_coordinator
from streams.membership.group_offsets import fetch_offsets
from streams.runtime.clients import call_with_retries
from streams.spark.source.broker_access import BrokerAccess

T = TypeVar("T")

_REQUEST_TIMEOUT_S = 10.0
_PENDING_POLL_S = 0.005
"""An offset is pending for as long as a transaction takes to commit: some milliseconds."""
_NAMES_SHOWN_MAX = 5


class OffsetClient:
    """Fetches committed offsets and partition ends from the brokers within one time limit.

    `timeout_ms` is the limit for all requests together.

    Raises: ConfigError if no broker answers, and for settings that can't be used;
    AuthenticationError if a broker refuses the credentials or isn't trusted.
    """

    def __init__(self, access: BrokerAccess, timeout_ms: int) -> None:
        self.access = access
        self.servers = access.bootstrap_servers
        self.timeout_s = timeout_ms / 1000
        self._deadline_s = time.monotonic() + self.timeout_s
        self._request_timeout_s = min(self.timeout_s, _REQUEST_TIMEOUT_S)
        # The check of a secured connection, which comes first, has no longer than a request.
        self._admin = access.create_admin(self._request_timeout_s, retry_s=0.0)
        self.partition_counts: Mapping[str, int] = self._admin.fetch_partition_counts_at_start(
            min(self.remaining_s, _REQUEST_TIMEOUT_S)
        )
        """Of every topic, as of the beginning."""

    @property
    def remaining_s(self) -> float:
        """Return how many seconds of the time limit are left, at least 0."""
        return max(self._deadline_s - time.monotonic(), 0.0)

    def list_partitions(self, topics: Iterable[str]) -> list[Partition]:
        """List the partitions of those `topics` that existed when this client was created."""
        counts = self.partition_counts
        return [Partition(t, n) for t in sorted(set(topics)) for n in range(counts.get(t, 0))]

    def list_groups(self) -> list[str]:
        """List the ids of all groups."""
        return self._retry_until_answered("list groups", self._admin.list_groups)

    def fetch_committed_offsets(
        self, group_id: str, partitions: Sequence[Partition] | None
    ) -> CommittedOffsets:
        """Fetch a group's committed offsets, with the partitions whose offsets are pending.

        An offset is pending while an open transaction is about to change it. `partitions` None
        stands for all that the group has offsets of. One OffsetFetch request.
        """

        def fetch_from_coordinator() -> CommittedOffsets:
            timeout_s = self._request_timeout_s
            with closing(self.access.open_connection(None, timeout_s)) as bootstrap:
                address = find_coordinator(bootstrap, group_id)
            with closing(self.access.open_connection(address, timeout_s)) as connection:
                return fetch_offsets(connection, group_id, partitions)

        return self._retry_until_answered(
            f"read the offsets of {group_id!r}", fetch_from_coordinator
        )

    def fetch_stable_offsets(
        self, group_id: str, partitions: Sequence[Partition]
    ) -> CommittedOffsets:
        """Fetch a group's committed offsets once no transaction is about to change any of them.

        Raises: UserError, with the partitions, if some are still pending when the time is over.
        """
        while True:
            committed = self.fetch_committed_offsets(group_id, partitions)
            if not committed.pending:
                return committed
            if not self.remaining_s:
                raise UserError(
                    f"no cut of {group_id!r} within {self.timeout_s:g} s: transactions are about "
                    f"to change the offsets of {_join_first_names(committed.pending)}. Either one "
                    "hangs, until the coordinator ends it after its transaction.timeout.ms, or "
                    "there is always another: try again, with a longer timeout_ms or a longer "
                    "commit interval"
                )
            time.sleep(_PENDING_POLL_S)

    def fetch_high_watermarks(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Fetch the high watermark of each partition; records of open transactions are below it."""
        return self._retry_until_answered(
            "read the ends of topics", lambda: self._admin.fetch_latest_offsets(partitions)
        )

    def fetch_last_stable_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Fetch the last stable offset of each partition; all transactions below it have ended."""
        return self._retry_until_answered(
            "read the ends of topics", lambda: self._admin.fetch_last_stable_offsets(partitions)
        )

    def fetch_topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Fetch the ids of those `topics` that existed when this client was created."""
        existing = sorted(set(topics) & self.partition_counts.keys())
        return self._retry_until_answered(
            "read the ids of topics", lambda: self._admin.fetch_topic_ids(existing)
        )

    def wait_for_transactions(self, end_offsets: Mapping[Partition, int]) -> None:
        """Wait until every transaction that wrote below `end_offsets` has ended.

        Then all that was committed below them can be read.

        Raises: UserError, with the partitions, if a transaction is still open when the time is
        over.
        """
        waiting = {p: at for p, at in end_offsets.items() if at > 0}
        while waiting:
            stable = self.fetch_last_stable_offsets(list(waiting))
            waiting = {p: at for p, at in waiting.items() if stable[p] < at}
            if waiting and not self.remaining_s:
                open_at = [f"{p} at {stable[p]}" for p in sorted(waiting)]
                raise UserError(
                    f"no cut within {self.timeout_s:g} s: transactions are open in "
                    f"{_join_first_names(open_at)}. One that hangs is ended by the coordinator "
                    "after its transaction.timeout.ms: try again then, or with a longer timeout_ms"
                )
            if waiting:
                time.sleep(_PENDING_POLL_S)

    def fetch_ends_and_await_transactions(
        self, partitions: Sequence[Partition]
    ) -> dict[Partition, int]:
        """Return the high watermarks after waiting until all transactions below them have ended."""
        ends = self.fetch_high_watermarks(partitions)
        self.wait_for_transactions(ends)
        return ends

    def _retry_until_answered(self, description: str, send_request: Callable[[], T]) -> T:
        """Send a request again until it is answered. Raises ConfigError if the time is over."""
        try:
            return call_with_retries(
                lambda _: send_request(), self.remaining_s, ConnectionLost, OutcomeUnknown
            )
        except (ConnectionLost, OutcomeUnknown) as error:
            raise ConfigError(
                f"the brokers at {self.servers!r} gave no answer within "
                f"{self.timeout_s:g} s: {description}: {error}"
            ) from error


def _join_first_names(names: Collection[object]) -> str:
    """Join the first few names in their order, and count the others."""
    shown = ", ".join(str(each) for each in sorted(names, key=str)[:_NAMES_SHOWN_MAX])
    return shown + (
        f" and {len(names) - _NAMES_SHOWN_MAX} more" if len(names) > _NAMES_SHOWN_MAX else ""
    )
