"""Read a store over all workers: a key where it is, a range wherever the store has partitions.

A key that is nowhere is an answer only if all partitions of the store were read: a step may keep it
in another partition than its own (docs/decisions/0049). Tasks that move, restore or have just gone
are asked for again, by a fresh look at who has which, until the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from streams.errors import StoreUnavailable
from streams.queries.committed_reads import Position
from streams.queries.local_stores import LocalStores, StoreAnswer
from streams.queries.store_reads import StoreRead, merge_rows

if TYPE_CHECKING:
    from streams.queries.endpoint_client import EndpointClient

_RETRY_PAUSE_S = 0.05
_ATTEMPT_S = 5.0
"""The seconds that one attempt may take: then it is looked anew who has what, and for a stop."""
_OWN_WAIT_S = 0.5


class RoutedReads:
    """Sends reads of a store to this worker and to all others with an endpoint.

    `own_endpoint` is this worker's, as host:port; empty if it has none. `create_client` is called
    when another worker is asked for the first time: most workers never ask.
    """

    def __init__(
        self, local: LocalStores, create_client: Callable[[], EndpointClient], own_endpoint: str
    ) -> None:
        self.local = local
        self._own_endpoint = own_endpoint
        self._create_client = create_client
        self._client: EndpointClient | None = None
        self._creating = Lock()
        self.is_stopping = False

    def stop_waiting(self) -> None:
        """Let reads that wait or begin end with StoreUnavailable: this worker is going."""
        self.is_stopping = True

    def close(self) -> None:
        """Close the connections to other workers."""
        with self._creating:
            if self._client is not None:
                self._client.close()

    def _get_client(self) -> EndpointClient:
        """Return the client for other workers, which is created once."""
        with self._creating:
            if self._client is None:
                self._client = self._create_client()
            return self._client

    def read(
        self, name: str, read: StoreRead, *, at_least: Position, timeout_s: float
    ) -> StoreAnswer:
        """Return what all workers have committed, in the order of the keys' bytes.

        Raises StoreUnavailable if that can't be known within `timeout_s`; what `LocalStores.read`
        raises for a read that the store can't answer at all.
        """
        give_up_at_s = time.monotonic() + timeout_s
        while True:
            if self.is_stopping:
                raise StoreUnavailable("this worker is being stopped: ask another one")
            left_s = min(give_up_at_s - time.monotonic(), _ATTEMPT_S)
            try:
                return self._read_once(name, read, at_least, max(left_s, 0.001))
            except StoreUnavailable:
                if time.monotonic() + _RETRY_PAUSE_S > give_up_at_s:
                    raise
            time.sleep(_RETRY_PAUSE_S)

    def _read_once(
        self, name: str, read: StoreRead, at_least: Position, timeout_s: float
    ) -> StoreAnswer:
        """Return what all workers answer now. Raises StoreUnavailable."""
        spec, _ = self.local.find_store(name)
        partition = self.local.find_partition(name, read.key) if read.is_lookup else None
        answers: list[StoreAnswer] = []
        read_partitions: frozenset[int] = frozenset()
        for endpoint in self._list_endpoints(name, partition):
            if endpoint == self._own_endpoint:
                wait_s = min(timeout_s, _OWN_WAIT_S)
                answer = self.local.read(name, read, at_least=at_least, wait_s=wait_s)
            else:
                answer = self._get_client().read(
                    endpoint, spec, read, at_least=at_least, timeout_s=timeout_s
                )
            if read.is_lookup and answer.rows:
                return answer
            if again := sorted(answer.partitions & read_partitions):
                raise StoreUnavailable(f"store {name!r}: partitions {again} have moved meanwhile")
            read_partitions |= answer.partitions
            answers.append(answer)
        missing = {*range(self.local.count_partitions(name))} - read_partitions
        if missing:
            raise StoreUnavailable(
                f"store {name!r}: partitions {', '.join(map(str, sorted(missing)))} are on no "
                "worker that answers queries now"
            )
        rows, has_more = merge_rows(spec, [each.rows for each in answers], read)
        return StoreAnswer(
            rows,
            has_more or any(each.has_more for each in answers),
            {p: offset for each in answers for p, offset in each.position.items()},
            read_partitions,
            max((each.age_s for each in answers), default=0.0),
        )

    def _list_endpoints(self, name: str, partition: int | None) -> list[str]:
        """Return the endpoints to ask, the one that has `partition` first, then this worker's."""
        hosts = [each for each in self.local.list_hosts(name) if each.role == "active"]
        owners = [each.address for each in hosts if each.partition == partition]
        return list(dict.fromkeys([*owners, self._own_endpoint, *(each.address for each in hosts)]))
