from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from uuid import UUID

import pytest

from coordinator.errors import Code, Refused
from coordinator.fetching.fetch_context import FetchAnswer, FetchContext, create_fetch_context
from coordinator.fetching.session import FetchPartition, PartitionKey, PartitionOutcome, next_epoch
from coordinator.fetching.session_cache import FetchSessionCache

NOTHING = PartitionOutcome(False, False, 5, 0)
RECORDS = NOTHING._replace(has_records=True)
ERROR = PartitionOutcome(False, True, -1, -1)


class Client:
    """Sends fetch requests for partitions of `t`, which are given by number."""

    def __init__(self) -> None:
        ids = count(1)
        self.sessions = FetchSessionCache(10, lambda: next(ids))
        self.session_id = 0
        self.epoch = 0

    def open(
        self, *partitions: int, forget: Iterable[int] = (), uses_ids: bool = False
    ) -> FetchContext:
        topic = UUID(int=1) if uses_ids else "t"
        wanted: dict[PartitionKey, FetchPartition] = {
            (topic, index): FetchPartition(topic, index, 0, 1) for index in partitions
        }
        fetch = create_fetch_context(
            self.sessions,
            self.session_id,
            self.epoch,
            wanted,
            [(topic, index) for index in forget],
            uses_topic_ids=uses_ids,
            now_ms=0,
        )
        self.epoch += 1
        return fetch

    def fetch(
        self, *partitions: int, forget: Iterable[int] = (), **news: PartitionOutcome
    ) -> list[int]:
        """Return the partitions in the response; `p1=RECORDS` says that partition 1 has records."""
        found = answer(self.open(*partitions, forget=forget), **news)
        assert found.code == Code.NONE
        self.session_id = found.session_id
        return [one.partition for one, _, _ in found.results]


def answer(fetch: FetchContext, **news: PartitionOutcome) -> FetchAnswer:
    return fetch.build_answer(
        [(one, news.get(f"p{one.partition}", NOTHING), None) for one in fetch.partitions]
    )


def test_in_a_session_only_news_is_told() -> None:
    client = Client()
    assert client.fetch(0, 1, 2) == [0, 1, 2]
    assert client.fetch(p1=RECORDS) == [1]
    assert client.fetch(p2=NOTHING._replace(high_watermark=6)) == [2]
    assert client.fetch(p2=NOTHING._replace(high_watermark=6)) == []
    assert client.fetch(p0=NOTHING._replace(start_offset=1), p2=NOTHING) == [0, 2]


def test_an_error_is_told_until_it_is_over_and_then_once_more() -> None:
    client = Client()
    client.fetch(0)
    assert client.fetch(p0=ERROR) == [0]
    assert client.fetch(p0=ERROR) == [0]
    assert client.fetch() == [0]
    assert client.fetch() == []


def test_a_partition_with_records_is_read_last_the_next_time() -> None:
    client = Client()
    client.fetch(0, 1, 2)
    client.fetch(p0=RECORDS, p1=RECORDS)
    assert [one.partition for one in client.open().partitions] == [2, 0, 1]


def test_a_change_of_offset_leaves_the_order_and_what_was_told() -> None:
    client = Client()
    client.fetch(0, 1)
    fetch = client.open(0)
    assert [one.partition for one in fetch.partitions] == [0, 1]
    assert answer(fetch).results == []


def test_a_session_begins_with_what_was_answered_and_has_an_epoch_of_its_own() -> None:
    client = Client()
    client.fetch(0)
    assert (client.session_id, client.epoch) == (1, 1)
    session = client.sessions.find_session(1)
    assert session is not None
    client.fetch()
    assert session.epoch == 2


def test_forgetting_the_last_partition_ends_the_session() -> None:
    client = Client()
    client.fetch(0, 1)
    client.fetch(forget=[0])
    assert client.fetch(forget=[1]) == []
    assert (client.session_id, len(client.sessions)) == (0, 0)


@pytest.mark.parametrize("epoch", [0, -1])
def test_a_whole_request_ends_the_session_that_it_names(epoch: int) -> None:
    client = Client()
    client.fetch(0)
    first, client.epoch = client.session_id, epoch
    assert client.fetch(0) == [0]
    assert client.sessions.find_session(first) is None
    assert (client.session_id == 0) == (epoch == -1)


@pytest.mark.parametrize(
    ("session_id", "epoch", "uses_ids", "code"),
    [
        (9, 1, False, Code.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, False, Code.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, False, Code.INVALID_FETCH_SESSION_EPOCH),
        (1, -2, False, Code.INVALID_FETCH_SESSION_EPOCH),
        (1, 2, True, Code.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, Code.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_of_no_session_is_refused_and_changes_none(
    session_id: int, epoch: int, uses_ids: bool, code: Code
) -> None:
    client = Client()
    client.fetch(0)
    client.session_id, client.epoch = session_id, epoch
    with pytest.raises(Refused) as refused:
        client.open(1, uses_ids=uses_ids)
    assert refused.value.code == code
    client.session_id, client.epoch = 1, 1
    assert [one.partition for one in client.open().partitions] == [0]


def test_an_answer_that_another_request_of_the_session_has_overtaken_is_refused() -> None:
    client = Client()
    client.fetch(0)
    overtaken = client.open()
    client.fetch(p0=RECORDS)
    found = answer(overtaken, p0=RECORDS)
    assert found == FetchAnswer(1, [], Code.INVALID_FETCH_SESSION_EPOCH)


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (5, 6), (2**31 - 1, 1), (-1, -1)])
def test_after_the_largest_epoch_comes_1(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following
