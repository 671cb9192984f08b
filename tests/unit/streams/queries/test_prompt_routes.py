"""Test which look-ups another worker answers without a thread of the one that is asked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from streams import serdes
from streams.common.addresses import format_address
from streams.common.topic_partitions import Partition
from streams.errors import StoreUnavailable
from streams.graph.nodes import StoreKind
from streams.queries.endpoint_client import EndpointClient
from streams.queries.prompt_reads import PromptReads
from streams.queries.prompt_routes import PromptRoutes
from streams.queries.read_threads import ReadThreads
from streams.queries.request_terms import RequestTerms
from streams.queries.routed_reads import RoutedReads
from streams.queries.stale_bounds import StaleBounds
from streams.queries.store_answers import StoreAnswer
from streams.queries.store_reads import StoreRead, StoreRow
from streams.runtime.threads.query_measurements import QueryMeasurements
from tests.processes import HANG_LIMIT_S, free_ports
from tests.unit.streams.queries.counted_stores import (
    create_counted_stores,
    create_routed_reads,
)
from tests.unit.streams.queries.served import TOKEN, FakeReads, declare_store, serve

LOOK_UP = StoreRead(is_lookup=True, key="a")
IN = Partition("in", 0)
TERMS = RequestTerms("c", False, None, {}, None, 2.0)


@pytest.fixture
def owner() -> FakeReads:
    """Return what the worker has that is asked for its rows."""
    spec = declare_store("c", serdes.string, serdes.int64, StoreKind.KEY_VALUE)
    return FakeReads({"c": spec}, {"c": [StoreRow("a", 2, 5)]})


@pytest.fixture
def reads(owner: FakeReads) -> Iterator[RoutedReads]:
    """Return the reads of a worker that has no task, and knows that `owner` has them."""
    with serve(owner) as address:
        made = create_routed_reads(format_address(address))
        yield made
        made.close()


def find_answer(
    reads: RoutedReads, terms: RequestTerms = TERMS, read: StoreRead = LOOK_UP
) -> StoreAnswer | None:
    async def find() -> StoreAnswer | None:
        found = await PromptRoutes(reads, PromptReads(reads)).find_routed_answer(terms, read)
        reads.stop_waiting()
        await asyncio.sleep(0)  # until the loop has closed its connections
        return found

    return asyncio.run(find())


def test_a_key_that_another_worker_has_is_asked_for(reads: RoutedReads, owner: FakeReads) -> None:
    found = find_answer(reads, TERMS._replace(at_least={IN: 7}))
    assert found is not None
    assert [(row.key, row.value, row.timestamp_ms) for row in found.rows] == [("a", 2, 5)]
    assert (dict(found.position), list(found.partitions)) == ({IN: 7}, [0])
    assert found.age_s >= 0.25  # the owner's, and the time of the exchange
    assert [each.key for each in owner.reads] == ["a"]


@pytest.mark.parametrize(
    ("terms", "read"),
    [
        (TERMS._replace(is_local=True), LOOK_UP),
        (TERMS._replace(stale_ok=StaleBounds(1)), LOOK_UP),
        (TERMS._replace(at_least={Partition("in", 9): 1}), LOOK_UP),
        (TERMS, StoreRead(key_from="a")),
    ],
)
def test_what_the_threads_answer_is_not_sent(
    reads: RoutedReads, owner: FakeReads, terms: RequestTerms, read: StoreRead
) -> None:
    assert find_answer(reads, terms, read) is None
    assert owner.reads == []


def test_a_key_that_the_owner_does_not_have_may_be_elsewhere(
    reads: RoutedReads, owner: FakeReads
) -> None:
    assert find_answer(reads, read=StoreRead(is_lookup=True, key="nowhere")) is None
    assert len(owner.reads) == 1


def test_a_position_that_the_owner_has_not_reached_is_no_answer(reads: RoutedReads) -> None:
    assert find_answer(reads, TERMS._replace(at_least={IN: 8}, wait_s=0.1)) is None


def test_an_error_of_the_owner_is_no_answer(reads: RoutedReads, owner: FakeReads) -> None:
    def refuse(read: StoreRead) -> None:
        raise StoreUnavailable("tasks are moving")

    owner.before_read = refuse
    assert find_answer(reads) is None
    assert len(owner.reads) == 1


def test_an_owner_that_is_gone_or_nobody_is_no_answer() -> None:
    [port] = free_ports(1)
    assert find_answer(create_routed_reads(f"127.0.0.1:{port}")) is None
    assert find_answer(create_routed_reads("127.0.0.1:1")) is None  # its own address


def test_an_answer_that_would_come_too_late_is_not_asked_for(
    reads: RoutedReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def note_request(_: EndpointClient, endpoint: str, *__: Any, **___: Any) -> None:
        asked.append(endpoint)
        raise StoreUnavailable("no answer in time")

    monkeypatch.setattr(EndpointClient, "read_on_loop", note_request)
    assert find_answer(reads, TERMS._replace(wait_s=0.0)) is None
    assert asked == []


def test_a_worker_that_stops_asks_nobody(reads: RoutedReads, owner: FakeReads) -> None:
    reads.stop_waiting()
    assert find_answer(reads) is None
    assert owner.reads == []


def test_what_is_not_found_at_once_is_left_to_the_threads(
    reads: RoutedReads, owner: FakeReads
) -> None:
    attempts: list[StoreRead] = []

    def refuse_once(read: StoreRead) -> None:
        attempts.append(read)
        if len(attempts) == 1:
            raise StoreUnavailable("tasks are moving")

    owner.before_read = refuse_once

    async def read_rows() -> Any:
        threads = ReadThreads(reads, QueryMeasurements())
        answer, _ = await threads.read_answer(TERMS, LOOK_UP, lambda answer: b"")
        reads.stop_waiting()
        await asyncio.sleep(0)
        return [row.value for row in answer.rows]

    assert asyncio.run(read_rows()) == [2]
    assert len(attempts) == 2


def test_a_client_that_is_created_while_the_worker_stops_asks_nobody_on_the_loop() -> None:
    is_creating, may_create = threading.Event(), threading.Event()
    is_closed: list[bool] = []

    class Client(EndpointClient):
        def close_on_loop(self) -> None:
            is_closed.append(True)
            super().close_on_loop()

    def create_slowly() -> Client:
        is_creating.set()
        assert may_create.wait(HANG_LIMIT_S)
        return Client(TOKEN)

    reads = RoutedReads(create_counted_stores(None), create_slowly, "127.0.0.1:1")
    creating = threading.Thread(target=reads.get_client, daemon=True)
    creating.start()
    assert is_creating.wait(HANG_LIMIT_S)
    stopping = threading.Thread(target=reads.stop_waiting, daemon=True)
    stopping.start()
    may_create.set()
    for thread in (creating, stopping):
        thread.join(HANG_LIMIT_S)
    assert is_closed
    reads.close()
