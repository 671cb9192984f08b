"""Read a store over all workers: a key where it is, a range wherever the store has partitions.

A key that is nowhere is an answer only if all partitions of the store were read: a step may keep
it in another partition than its own (docs/decisions/0049). Each worker is asked for certain
partitions, all workers at once. Tasks that move, restore or have just gone are asked for again, by
a fresh look at who has which, until the time is over.

candidates for a partition         strict    stale answers are allowed
this worker, if it has it          active    active or standby
the worker with the active task    yes       yes
the workers with standby tasks     -         yes, in this order
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from streams.errors import StoreUnavailable
from streams.queries.committed_reads import Position
from streams.queries.local_stores import LocalStores
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer, merge_answers
from streams.queries.store_reads import StoreRead

if TYPE_CHECKING:
    from streams.queries.endpoint_client import EndpointClient

Endpoint: TypeAlias = str

_RETRY_PAUSE_S = 0.05
ATTEMPT_S = 5.0
"""The seconds that one attempt may take: then it is looked anew who has what, and for a stop."""
_OWN_WAIT_S = 0.5
_THREADS_MAX = 64
"""The most requests to other workers that are open at once."""


class ReadTerms(NamedTuple):
    """Holds what an answer has to fulfil: positions, how stale it may be, and by when it is due."""

    at_least: Position
    stale_ok: StaleBounds | None
    give_up_at_s: float

    @property
    def left_s(self) -> float:
        """Return the seconds that are left, a little more than 0 at least."""
        return max(self.give_up_at_s - time.monotonic(), 0.001)


class RoutedReads:
    """Sends reads of a store to this worker and to all others with an endpoint.

    `own_endpoint` is this worker's, as host:port; empty if it has none. `create_client` is called
    when another worker is asked for the first time: most workers never ask.
    """

    def __init__(
        self, local: LocalStores, create_client: Callable[[], EndpointClient], own_endpoint: str
    ) -> None:
        self.local = local
        self.own_endpoint = own_endpoint
        self._create_client = create_client
        self._client: EndpointClient | None = None
        self._creating = Lock()
        self._executor = ThreadPoolExecutor(_THREADS_MAX, thread_name_prefix="routed-reads")
        self.is_stopping = False

    def stop_waiting(self) -> None:
        """Let reads that wait or begin end with StoreUnavailable: this worker is going."""
        self.is_stopping = True
        with self._creating:
            if self._client is not None:
                self._client.close_on_loop()

    def close(self) -> None:
        """Close the connections to other workers."""
        with self._creating:
            if self._client is not None:
                self._client.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def get_client(self) -> EndpointClient:
        """Return the client for other workers, which is created once."""
        with self._creating:
            if self._client is None:
                self._client = self._create_client()
                if self.is_stopping:  # meanwhile
                    self._client.close_on_loop()
            return self._client

    def read(
        self,
        name: str,
        read: StoreRead,
        *,
        at_least: Position,
        timeout_s: float,
        stale_ok: StaleBounds | None = None,
    ) -> StoreAnswer:
        """Return what all workers have committed, in the order of the keys' bytes.

        Raises StoreUnavailable if that can't be known within `timeout_s`; what `LocalStores.read`
        raises for a read that the store can't answer at all.
        """
        terms = ReadTerms(at_least, stale_ok, time.monotonic() + timeout_s)
        while True:
            if self.is_stopping:
                raise StoreUnavailable("this worker is being stopped: ask another one")
            try:
                return self._read_once(name, read, terms)
            except StoreUnavailable:
                if time.monotonic() + _RETRY_PAUSE_S > terms.give_up_at_s:
                    raise
            time.sleep(_RETRY_PAUSE_S)

    def _read_once(self, name: str, read: StoreRead, terms: ReadTerms) -> StoreAnswer:
        """Return what all workers answer now. Raises StoreUnavailable."""
        spec, _ = self.local.find_store(name)
        wanted = set(range(self.local.count_partitions(name)))
        answers: list[StoreAnswer] = []
        if read.is_lookup:
            likely = {self.local.find_partition(name, read.key)}
            answers = self._read_partitions(name, read, likely, terms)
            if any(each.rows for each in answers):
                return merge_answers(spec, answers, read)
            wanted -= likely
        if wanted:
            answers += self._read_partitions(name, read, wanted, terms)
        if read.is_lookup and (found := [each for each in answers if each.rows]):
            answers = found
        return merge_answers(spec, answers, read)

    def _read_partitions(
        self, name: str, read: StoreRead, wanted: Collection[int], terms: ReadTerms
    ) -> list[StoreAnswer]:
        """Return answers that together have the wanted partitions, each once.

        A worker that fails is passed over for the next candidate. Raises StoreUnavailable.
        """
        answers: list[StoreAnswer] = []
        missing = set(wanted)
        failed: set[tuple[Endpoint, int]] = set()
        reason = ""
        while missing:
            plan = self._plan_requests(name, missing, failed, terms.stale_ok)
            if not plan:
                break
            for endpoint, future in self._send_requests(name, read, plan, terms):
                try:
                    answer = future.result(terms.left_s)
                except (StoreUnavailable, TimeoutError) as error:
                    reason = str(error) or f"worker {endpoint} does not answer in time"
                else:
                    if answer.partitions:
                        answers.append(answer)
                    missing -= answer.partitions
                failed |= {(endpoint, partition) for partition in plan[endpoint]}
            if read.call and terms.left_s <= _RETRY_PAUSE_S:
                break
        if missing:
            raise StoreUnavailable(
                reason
                or f"store {name!r}: partitions {', '.join(map(str, sorted(missing)))} are on no "
                "worker that answers queries now"
            )
        return answers

    def _plan_requests(
        self,
        name: str,
        wanted: Collection[int],
        failed: Collection[tuple[Endpoint, int]],
        stale_ok: StaleBounds | None,
    ) -> dict[str, set[int]]:
        """Return which worker to ask for which partitions, by what is known of them now."""
        own = self.local.list_own_partitions(name, with_standbys=stale_ok is not None)
        candidates: dict[int, list[str]] = {
            partition: [self.own_endpoint] if partition in own else [] for partition in wanted
        }
        for host in self.local.list_hosts(name):  # the active one before standbys
            if host.partition in candidates and (host.role == "active" or stale_ok is not None):
                candidates[host.partition].append(host.address)
        plan: defaultdict[str, set[int]] = defaultdict(set)
        for partition, endpoints in candidates.items():
            for endpoint in endpoints:
                if (endpoint, partition) not in failed:
                    plan[endpoint].add(partition)
                    break
        return plan

    def _send_requests(
        self, name: str, read: StoreRead, plan: dict[str, set[int]], terms: ReadTerms
    ) -> Iterator[tuple[Endpoint, Future[StoreAnswer]]]:
        """Yield each worker with its answer, the other workers' after they were asked all at once.

        They have half of the time that is left: so there is a second attempt. Nobody ends a
        function that takes too long, so a call has all of the time, and is tried again only where
        a connection or a refusal has ended it before.
        """
        timeout_s = terms.left_s if read.call else min(terms.left_s / 2, ATTEMPT_S)
        others = {
            endpoint: each for endpoint, each in plan.items() if endpoint != self.own_endpoint
        }
        reads = self._prepare_reads(name, read, others, terms, timeout_s)
        if len(plan) == 1 and reads:
            # Without another thread: while a stream thread is busy each change of threads is slow.
            [(endpoint, read_other)] = reads.items()
            yield endpoint, _complete_read(read_other)
            return
        sent = {endpoint: self._executor.submit(each) for endpoint, each in reads.items()}
        if (partitions := plan.get(self.own_endpoint)) is not None:
            read_own = partial(
                self.local.read,
                name,
                read,
                partitions=partitions,
                at_least=terms.at_least,
                stale_ok=terms.stale_ok,
                wait_s=min(timeout_s, _OWN_WAIT_S),
            )
            yield self.own_endpoint, _complete_read(read_own)
        yield from sent.items()

    def _prepare_reads(
        self,
        name: str,
        read: StoreRead,
        plan: Mapping[str, set[int]],
        terms: ReadTerms,
        timeout_s: float,
    ) -> dict[str, Callable[[], StoreAnswer]]:
        """Return what asks each of the other workers for its partitions."""
        spec, _ = self.local.find_store(name)
        return {
            endpoint: partial(
                self.get_client().read,
                endpoint,
                spec,
                read,
                partitions=partitions,
                at_least=terms.at_least,
                stale_ok=terms.stale_ok,
                timeout_s=timeout_s,
            )
            for endpoint, partitions in plan.items()
        }


def _complete_read(read: Callable[[], StoreAnswer]) -> Future[StoreAnswer]:
    """Return the answer of `read`, or the StoreUnavailable that it raises, as a finished future."""
    answer: Future[StoreAnswer] = Future()
    try:
        answer.set_result(read())
    except StoreUnavailable as error:
        answer.set_exception(error)
    return answer
