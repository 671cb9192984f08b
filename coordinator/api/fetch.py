"""Fetch: batches from the offsets that a consumer asks for, waiting for them if need be.

Behaviour: partitions are read in the order of the request until `max_bytes` is used up, each up to
its own limit; the first batch of the first partition that has data is given whole whatever the
limits. With less than `min_bytes` in all and no error, the answer waits for appends (or for the
last stable offset) up to `max_wait`. read_committed reads below the last stable offset and gets
the aborted transactions of what it reads.
Versions: 4 isolation (KIP-98), 5 log start, 7 sessions (KIP-227), 9 leader epochs (KIP-320),
12 flexible, 13 topic ids (KIP-516), 15-18 replicas' fields.
Simplifications: no sessions: every answer has session id 0, so clients send whole requests.
Leader epochs are 0 for ever: only a higher one is refused. No preferred replica, no quota.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.log.partition import Partition
from coordinator.log.topics import Topic, partition_of
from coordinator.wire.codec import to_ms

API_KEY = 1
VERSIONS = range(4, 19)

_READ_COMMITTED = 1


class _Attempt(NamedTuple):
    """What can be answered now."""

    responses: list[dict[str, Any]]
    size: int
    failed: bool
    partitions: list[Partition]


def handle(request: Any, context: Context) -> Any:
    if getattr(request, "session_id", 0) != 0:
        return refuse(request, context, Code.FETCH_SESSION_ID_NOT_FOUND)
    attempt = _attempt(request, context)
    max_wait_ms = to_ms(request.max_wait)
    if _is_enough(attempt, request) or max_wait_ms <= 0:
        return context.reply(responses=attempt.responses)
    return _LongPoll(request, context, attempt.partitions, max_wait_ms).answer


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code at the top; before version 7, which has no place there, for every partition."""
    if context.version >= 7:
        return context.reply(error_code=code, responses=())
    responses = [
        {"topic": asked.topic, "partitions": [_failed(one, code) for one in asked.partitions]}
        for asked in request.topics
    ]
    return context.reply(responses=responses)


def _is_enough(attempt: _Attempt, request: Any) -> bool:
    return attempt.failed or attempt.size >= request.min_bytes or not attempt.responses


class _LongPoll:
    """A fetch that waits: tried again after each append to its partitions, until time is up."""

    def __init__(
        self, request: Any, context: Context, partitions: list[Partition], max_wait_ms: int
    ) -> None:
        self._request = request
        self._context = context
        self._partitions = partitions
        self._loop = asyncio.get_running_loop()
        self._is_woken = False
        self.answer: asyncio.Future[Any] = self._loop.create_future()
        self._timer = context.broker.scheduler.call_later(max_wait_ms, self._expire)
        for partition in partitions:
            partition.watch(self._wake)
        # However it ends, by an answer or by the client going away.
        self.answer.add_done_callback(self._forget)

    def _wake(self) -> None:
        # Not at once: the producer is answered first, and the other partitions of its request
        # are appended to.
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._retry)

    def _retry(self) -> None:
        self._is_woken = False
        if not self.answer.done():
            self._try(lambda attempt: _is_enough(attempt, self._request))

    def _expire(self) -> None:
        if not self.answer.done():
            self._try(lambda attempt: True)

    def _try(self, is_enough: Callable[[_Attempt], bool]) -> None:
        try:
            attempt = _attempt(self._request, self._context)
            if is_enough(attempt):
                self.answer.set_result(self._context.reply(responses=attempt.responses))
        except Exception as error:
            self.answer.set_exception(error)

    def _forget(self, _: asyncio.Future[Any]) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unwatch(self._wake)


def _attempt(request: Any, context: Context) -> _Attempt:
    """Read what is there now."""
    topics = context.broker.topics
    by_id = context.version >= 13
    budget = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    committed = request.isolation_level == _READ_COMMITTED
    responses: list[dict[str, Any]] = []
    partitions: list[Partition] = []
    size = 0
    failed = False
    for asked in request.topics:
        topic = topics.by_id(asked.topic_id) if by_id else topics.get(asked.topic)
        answers = []
        for one in asked.partitions:
            partition = _partition(topic, one)
            if isinstance(partition, Partition):
                partitions.append(partition)
                answer = _read(partition, one, committed, budget - size, at_least_one=size == 0)
            else:
                unknown_id = topic is None and by_id
                answer = _failed(one, Code.UNKNOWN_TOPIC_ID if unknown_id else partition)
            failed = failed or "error_code" in answer
            size += len(answer["records"])
            answers.append(answer)
        name = {"topic_id": asked.topic_id} if by_id else {"topic": asked.topic}
        responses.append({**name, "partitions": answers})
    return _Attempt(responses, size, failed, partitions)


def _partition(topic: Topic | None, asked: Any) -> Partition | Code:
    partition = partition_of(topic, asked.partition)
    if partition is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if getattr(asked, "current_leader_epoch", -1) > 0:
        return Code.UNKNOWN_LEADER_EPOCH
    return partition


def _read(
    partition: Partition, asked: Any, committed: bool, budget: int, at_least_one: bool
) -> dict[str, Any]:
    max_bytes = min(asked.partition_max_bytes, max(budget, 0))
    try:
        fetched = partition.fetch(
            asked.fetch_offset, max_bytes, committed=committed, at_least_one=at_least_one
        )
    except Refused as refused:
        return _failed(asked, refused.code)
    aborted = None
    if fetched.aborted is not None:
        aborted = [
            {"producer_id": a.producer_id, "first_offset": a.first_offset} for a in fetched.aborted
        ]
    return {
        "partition_index": asked.partition,
        "high_watermark": partition.end_offset,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.start_offset,
        "aborted_transactions": aborted,
        "records": fetched.records,
    }


def _failed(asked: Any, code: Code) -> dict[str, Any]:
    return {
        "partition_index": asked.partition,
        "error_code": code,
        "high_watermark": -1,
        "aborted_transactions": None,
        "records": b"",
    }
