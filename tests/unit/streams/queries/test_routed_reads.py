"""Test whose answers a read over all workers takes, and when it knows that a key is nowhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import pytest

from streams.errors import StoreUnavailable
from streams.queries.routed_reads import RoutedReads
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_hosts import StoreHost
from streams.queries.store_reads import StoreRead, StoreRow
from tests.unit.streams.runtime.world import build_counting_topology

[SPEC] = build_counting_topology().subtopologies[0].stores
OWN, OTHER = "a:1", "b:2"
FOUND = StoreRow("k", 7)
HOSTS: Any = ((OWN, 0, "active"), (OTHER, 1, "active"))


def answer(*partitions: int, rows: tuple[StoreRow, ...] = (), age_s: float = 0.0) -> StoreAnswer:
    return StoreAnswer(rows, False, {}, frozenset(partitions), age_s)


class Workers:
    """Stands in for this worker's stores, and for the client of the other ones'."""

    def __init__(
        self,
        answers: Mapping[str, StoreAnswer | Exception],
        partition: int = 0,
        hosts: Sequence[tuple[str, int, Literal["active", "standby"]]] = HOSTS,
        own: Collection[int] = (0,),
    ) -> None:
        self.answers = answers
        self.partition = partition
        self.hosts = hosts
        self.own = own
        self.asked: list[str] = []

    def find_store(self, name: str) -> Any:
        return SPEC, None

    def find_partition(self, name: str, key: object) -> int:
        return self.partition

    def count_partitions(self, name: str) -> int:
        return 2

    def list_own_partitions(self, name: str, *, with_standbys: bool) -> Collection[int]:
        return self.own

    def list_hosts(self, name: str) -> list[StoreHost]:
        return [StoreHost(a[0], int(a[2]), n, role, 0.0) for a, n, role in self.hosts]

    def answer(self, endpoint: str, partitions: Collection[int]) -> StoreAnswer:
        self.asked.append(endpoint)
        found = self.answers[endpoint]
        if isinstance(found, Exception):
            raise found
        return found._replace(partitions=found.partitions & frozenset(partitions))


class Client:
    """Stands in for the connections to other workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def read(
        self, endpoint: str, *_: Any, partitions: Collection[int], timeout_s: float, **__: Any
    ) -> StoreAnswer:
        return self._workers.answer(endpoint, partitions)


class Local(Workers):
    """Answers for this worker, too."""

    def read(self, *_: Any, partitions: Collection[int], **__: Any) -> StoreAnswer:
        return self.answer(OWN, partitions)


def look_up(
    local: Local, timeout_s: float = 0.01, stale_ok: StaleBounds | None = None
) -> StoreAnswer:
    reads = RoutedReads(local, lambda: Client(local), OWN)  # type: ignore[arg-type, return-value]
    read = StoreRead(is_lookup=True, key="k")
    return reads.read("c", read, at_least={}, timeout_s=timeout_s, stale_ok=stale_ok)


@pytest.mark.parametrize("partition", [0, 1])
def test_the_likely_owner_is_asked_first_and_nobody_else_if_it_has_the_key(partition: int) -> None:
    both = answer(0, rows=(FOUND,)), answer(1, rows=(FOUND,))
    local = Local(dict(zip((OWN, OTHER), both, strict=True)), partition)
    assert look_up(local).rows == (FOUND,)
    assert local.asked == [(OWN, OTHER)[partition]]


def test_a_key_that_a_step_keeps_in_another_partition_than_its_own_is_found() -> None:
    local = Local({OWN: answer(0), OTHER: answer(1, rows=(FOUND,))})
    assert look_up(local).rows == (FOUND,)


def test_a_key_is_nowhere_only_if_every_partition_was_read() -> None:
    absent = look_up(Local({OWN: answer(0), OTHER: answer(1, age_s=2.0)}))
    assert not absent.rows
    assert (absent.partitions, absent.age_s) == (frozenset((0, 1)), 2.0)
    for answers in ({OWN: answer(0), OTHER: answer()}, {OWN: answer(0), OTHER: answer(0)}):
        with pytest.raises(StoreUnavailable, match="partitions 1 are on no worker"):
            look_up(Local(answers))
    with pytest.raises(StoreUnavailable, match="no answer"):
        look_up(Local({OWN: answer(0), OTHER: StoreUnavailable("no answer")}))


def test_a_worker_that_can_not_answer_is_asked_again_until_the_time_is_over() -> None:
    local = Local({OWN: StoreUnavailable("restores"), OTHER: answer(1)})
    with pytest.raises(StoreUnavailable, match="restores"):
        look_up(local, timeout_s=0.2)
    assert local.asked.count(OWN) > 1


def test_a_partition_is_read_once_though_two_workers_have_it() -> None:
    hosts: Any = (*HOSTS, (OWN, 1, "active"))
    local = Local({OWN: answer(0, 1), OTHER: answer(1, rows=(FOUND,))}, hosts=hosts, own=(0, 1))
    reads = RoutedReads(local, lambda: Client(local), OWN)  # type: ignore[arg-type, return-value]
    found = reads.read("c", StoreRead(), at_least={}, timeout_s=0.01)
    assert (found.partitions, found.rows, local.asked) == (frozenset((0, 1)), (), [OWN])


def test_standbys_are_asked_only_if_that_is_allowed_and_after_the_active_task() -> None:
    hosts: Any = (*HOSTS, ("c:3", 1, "standby"))
    answers: dict[str, StoreAnswer | Exception] = {
        OWN: answer(0),
        OTHER: StoreUnavailable("gone"),
        "c:3": answer(1, rows=(FOUND,)),
    }
    local = Local(answers, 1, hosts)
    with pytest.raises(StoreUnavailable, match="gone"):
        look_up(local)
    assert local.asked == [OTHER]
    assert look_up(local, stale_ok=StaleBounds()).rows == (FOUND,)
    assert local.asked == [OTHER, OTHER, "c:3"]


def test_a_copy_on_this_worker_is_asked_first_if_it_may_be_stale() -> None:
    local = Local({OWN: answer(0, 1, rows=(FOUND,))}, 1, own=(0, 1))
    assert look_up(local, stale_ok=StaleBounds()).rows == (FOUND,)
    assert local.asked == [OWN]
