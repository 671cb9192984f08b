"""Handle Fetch, which reads batches from offsets and waits for more of them if need be.

Behaviour: partitions are read in the order of the request, or of the session, until `max_bytes` is
used up, each up to its own limit; the first batch of the first partition that has data is returned
whole whatever the limits. With less than `min_bytes` available and no error, the answer waits for
appends (or for the last stable offset) up to `max_wait`. A topic or partition that doesn't exist
is answered with the others and ends no wait, as in Kafka. read_committed reads below the last
stable offset and gets the aborted transactions of what it reads.
Versions: 4 isolation (KIP-98), 5 log start, 7 sessions (KIP-227), 9 leader epochs (KIP-320),
12 flexible and truncation by the last fetched epoch (KIP-595), 13 topic ids (KIP-516), 15-18
replicas' fields.
Simplifications: leader epochs are 0 for ever. No preferred replica, no quota, no followers.
Trace: here -> fetching/fetch_context (what to read) -> log/partition -> here ->
fetching/fetch_context (what to send) -> wire/send_buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.api.leader_epoch import UNKNOWN_EPOCH, check_leader_epoch, end_offset_of_epoch
from coordinator.errors import Code, Refused
from coordinator.fetching.fetch_context import FetchContext, PartitionResult, create_fetch_context
from coordinator.fetching.session import FetchPartition, PartitionKey, PartitionOutcome
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import TopicRegistry, partition_of
from coordinator.wire.codec import to_ms

if TYPE_CHECKING:
    from kio.schema.fetch.v18.request import FetchRequest
    from kio.schema.fetch.v18.response import FetchResponse

API_KEY = 1
VERSIONS = range(4, 19)

_READ_COMMITTED = 1
_TOPIC_IDS_SINCE = 13

ByteCount: TypeAlias = int

# A log, and how many bytes and records of it a fetch has found, to be counted once it is answered.
_FoundBatches: TypeAlias = tuple[PartitionLog, int, int]


class _FetchLimits(NamedTuple):
    """Holds the limits and the isolation level that apply to all partitions of a request."""

    read_committed: bool
    min_bytes: int
    max_bytes: int


class _ReadAttempt(NamedTuple):
    """Holds the results that a fetch finds now, and whether they are enough to answer it."""

    results: list[PartitionResult]
    is_enough: bool
    partitions: list[PartitionLog]
    found: list[_FoundBatches]


def handle_request(
    request: FetchRequest, context: RequestContext[FetchResponse]
) -> FetchResponse | asyncio.Future[FetchResponse]:
    services = context.services
    fetch = create_fetch_context(
        services.fetch_sessions,
        getattr(request, "session_id", 0),
        getattr(request, "session_epoch", -1),
        _collect_requested_partitions(request, context),
        _collect_forgotten_partitions(request, context),
        uses_topic_ids=context.version >= _TOPIC_IDS_SINCE,
        now_ms=services.clock.monotonic_ms(),
    )
    max_bytes = min(request.max_bytes, services.config.fetch_max_bytes)
    limits = _FetchLimits(
        request.isolation_level == _READ_COMMITTED, min(request.min_bytes, max_bytes), max_bytes
    )
    attempt = _read_partitions(fetch, limits, services.topics)
    max_wait_ms = to_ms(request.max_wait)
    if attempt.is_enough or max_wait_ms <= 0 or not attempt.partitions:
        return _build_response(context, fetch, attempt)
    return _WaitingFetch(fetch, limits, context, attempt.partitions, max_wait_ms).answer


def build_error_response(
    request: FetchRequest, context: RequestContext[FetchResponse], code: Code
) -> FetchResponse:
    """Return a response with `code` at the top; before version 7, for every partition."""
    if context.version >= 7:
        return context.build_response(error_code=code, responses=())
    results = [
        _build_failed_result(partition, code)
        for partition in _collect_requested_partitions(request, context).values()
    ]
    return context.build_response(responses=_group_by_topic(results, context.version))


def _collect_requested_partitions(
    request: FetchRequest, context: RequestContext
) -> dict[PartitionKey, FetchPartition]:
    """Return the requested partitions in order; of one that comes twice, the latter."""
    by_id = context.version >= _TOPIC_IDS_SINCE
    partitions: dict[PartitionKey, FetchPartition] = {}
    for requested in request.topics:
        topic: Any = requested.topic_id if by_id else requested.topic  # type: ignore[attr-defined]  # up to version 12
        for partition in requested.partitions:
            partitions[topic, partition.partition] = FetchPartition(
                topic,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                getattr(partition, "current_leader_epoch", -1),
                getattr(partition, "last_fetched_epoch", -1),
            )
    return partitions


def _collect_forgotten_partitions(
    request: FetchRequest, context: RequestContext
) -> Iterator[PartitionKey]:
    by_id = context.version >= _TOPIC_IDS_SINCE
    for asked in getattr(request, "forgotten_topics_data", ()):
        topic = asked.topic_id if by_id else asked.topic
        for partition in asked.partitions:
            yield topic, partition


def _build_response(
    context: RequestContext[FetchResponse], fetch: FetchContext, attempt: _ReadAttempt
) -> FetchResponse:
    answer = fetch.build_answer(attempt.results)
    for partition, byte_count, record_count in attempt.found:
        partition.figures.count_fetched(byte_count, record_count)
    return context.build_response(
        error_code=answer.code,
        session_id=answer.session_id,
        responses=_group_by_topic(answer.results, context.version),
    )


def _group_by_topic(results: list[PartitionResult], version: int) -> list[dict[str, Any]]:
    """Group results by topic in their order: a topic comes again if others are in between."""
    field = "topic_id" if version >= _TOPIC_IDS_SINCE else "topic"
    responses: list[dict[str, Any]] = []
    last: object = None
    for one, _, answer in results:
        if one.topic != last:
            last = one.topic
            responses.append({field: last, "partitions": []})
        responses[-1]["partitions"].append(answer)
    return responses


class _WaitingFetch:
    """Repeats a fetch after each append to its partitions until it finds enough or times out.

    Kafka's counterpart is DelayedFetch.
    """

    def __init__(
        self,
        fetch: FetchContext,
        limits: _FetchLimits,
        context: RequestContext[FetchResponse],
        partitions: list[PartitionLog],
        max_wait_ms: int,
    ) -> None:
        self._fetch = fetch
        self._limits = limits
        self._context = context
        self._partitions = partitions
        self._loop = asyncio.get_running_loop()
        self._is_woken = False
        self.answer: asyncio.Future[FetchResponse] = self._loop.create_future()
        self._timer = context.services.scheduler.call_later(max_wait_ms, self._answer_at_deadline)
        for partition in partitions:
            partition.change_callbacks.add_callback(self._schedule_retry)
        # Called however it ends, by an answer or by the client closing the connection.
        self.answer.add_done_callback(self._stop_waiting)

    def _schedule_retry(self) -> None:
        # Not at once: first the producer is answered, and the other partitions of its request are
        # written.
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon(self._retry_if_waiting)

    def _retry_if_waiting(self) -> None:
        self._is_woken = False
        if not self.answer.done():
            self._read_and_answer_if(lambda attempt: attempt.is_enough)

    def _answer_at_deadline(self) -> None:
        if not self.answer.done():
            self._read_and_answer_if(lambda attempt: True)

    def _read_and_answer_if(self, is_enough: Callable[[_ReadAttempt], bool]) -> None:
        try:
            attempt = _read_partitions(self._fetch, self._limits, self._context.services.topics)
            # If fewer partitions are found than when the wait began, one has been deleted.
            if is_enough(attempt) or len(attempt.partitions) < len(self._partitions):
                self.answer.set_result(_build_response(self._context, self._fetch, attempt))
        except Exception as error:
            self.answer.set_exception(error)

    def _stop_waiting(self, _: asyncio.Future[FetchResponse]) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.change_callbacks.remove_callback(self._schedule_retry)


def _read_partitions(
    fetch: FetchContext, limits: _FetchLimits, topics: TopicRegistry
) -> _ReadAttempt:
    """Read all partitions of a fetch as far as is possible now.

    Only the positions of batches are read; their bytes are read when they are sent.
    """
    results: list[PartitionResult] = []
    unknown: list[PartitionResult] = []  # these come last, as in Kafka
    partitions: list[PartitionLog] = []
    found: list[_FoundBatches] = []
    budget = limits.max_bytes
    available = 0
    failed = False
    for fetch_partition in fetch.partitions:
        partition = _resolve_name_and_find_partition(fetch_partition, topics)
        if isinstance(partition, Code):
            unknown.append(_build_failed_result(fetch_partition, partition))
            continue
        partitions.append(partition)
        try:
            # Until something was found, the first batch counts whatever the limits.
            result, more = _read_partition_into(
                fetch_partition,
                partition,
                limits.read_committed,
                budget,
                found,
                at_least_one=budget == limits.max_bytes,
            )
        except Refused as refused:
            result, more = _build_failed_result(fetch_partition, refused.code), 0
        failed = failed or result[1].failed
        available += more
        budget -= len(result[2]["records"])
        results.append(result)
    is_enough = failed or available >= limits.min_bytes
    return _ReadAttempt(results + unknown, is_enough, partitions, found)


def _resolve_name_and_find_partition(
    fetch_partition: FetchPartition, topics: TopicRegistry
) -> PartitionLog | Code:
    topic: Any
    if isinstance(fetch_partition.topic, UUID):
        topic = topics.by_id(fetch_partition.topic)
        if topic is not None:
            fetch_partition.name = topic.name
        elif fetch_partition.name is None:
            return Code.UNKNOWN_TOPIC_ID
        elif topics.get(fetch_partition.name) is not None:
            # The topic was deleted and created again during the session.
            return Code.INCONSISTENT_TOPIC_ID
    else:
        topic = topics.get(fetch_partition.topic)
    return partition_of(topic, fetch_partition.partition) or Code.UNKNOWN_TOPIC_OR_PARTITION


def _read_partition_into(
    fetch_partition: FetchPartition,
    partition: PartitionLog,
    read_committed: bool,
    max_bytes_left: int,
    found_batches: list[_FoundBatches],
    *,
    at_least_one: bool,
) -> tuple[PartitionResult, ByteCount]:
    """Read one partition; return its result, and its bytes as they count towards `min_bytes`.

    What is read is added to `found_batches`. Raises: Refused.
    """
    check_leader_epoch(
        max(fetch_partition.leader_epoch, UNKNOWN_EPOCH)
    )  # here any negative epoch is unknown
    if fetch_partition.last_fetched_epoch >= 0:
        partition.check_open()
        end = end_offset_of_epoch(partition, fetch_partition.last_fetched_epoch)
        if end is None:
            raise Refused(
                Code.OFFSET_OUT_OF_RANGE, f"leader epoch {fetch_partition.last_fetched_epoch}"
            )
        if end < fetch_partition.offset:
            return _build_diverging_result(fetch_partition, partition, end), 0
    max_bytes = max(min(fetch_partition.max_bytes, max_bytes_left), 0)
    fetched = partition.fetch_batches(
        fetch_partition.offset, max_bytes, committed=read_committed, at_least_one=at_least_one
    )
    size = len(fetched.records)
    if size:
        covered_count = max(0, fetched.end_offset - fetch_partition.offset)
        found_batches.append((partition, size, covered_count))
    aborted = fetched.aborted
    answer = {
        "partition_index": fetch_partition.partition,
        "high_watermark": partition.end_offset,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.start_offset,
        "aborted_transactions": None
        if aborted is None
        else [{"producer_id": a.producer_id, "first_offset": a.first_offset} for a in aborted],
        "records": fetched.records,
    }
    news = PartitionOutcome(size > 0, False, partition.end_offset, partition.start_offset)
    # As in Kafka, a fetch that reads an older segment than the active one doesn't wait.
    more = (
        _MORE_THAN_MIN_BYTES
        if fetched.is_older_segment
        else max(size, min(fetched.available, fetch_partition.max_bytes))
    )
    return (fetch_partition, news, answer), more


# More than any `min_bytes` can be.
_MORE_THAN_MIN_BYTES = 2**31


def _build_diverging_result(
    fetch_partition: FetchPartition, partition: PartitionLog, end_offset: int
) -> PartitionResult:
    """Build the result that tells a client to truncate its log to the epoch's `end_offset`."""
    answer = {
        "partition_index": fetch_partition.partition,
        "high_watermark": partition.end_offset,
        "last_stable_offset": partition.last_stable_offset,
        "log_start_offset": partition.start_offset,
        "diverging_epoch": {"epoch": 0, "end_offset": end_offset},
        "aborted_transactions": None,
        "records": b"",
    }
    return (
        fetch_partition,
        PartitionOutcome(False, True, partition.end_offset, partition.start_offset),
        answer,
    )


def _build_failed_result(fetch_partition: FetchPartition, code: Code) -> PartitionResult:
    answer = {
        "partition_index": fetch_partition.partition,
        "error_code": code,
        "high_watermark": -1,
        "aborted_transactions": None,
        "records": b"",
    }
    return fetch_partition, PartitionOutcome(False, True, -1, -1), answer
