"""Stand in for confluent-kafka's Consumer: assigned partitions, prefetch, committed records.

A position is where the application is: behind the last record that it was given, and past the
markers that came after it. What an aborted transaction wrote is dropped by the broker's list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message, TopicPartition

from coordinator.errors import Code
from tests.conformance.batches import Batch, decode
from tests.simulation.loop import Unanswered
from tests.simulation.runtime.clients.client import (
    RETRIABLE,
    RETRY_MS,
    Client,
    Failed,
    raised,
)
from tests.simulation.runtime.process import Process

FETCH = 1
FETCH_BYTES = 4_000
QUEUED_MAX = 500
WAIT_MS = 100
UNKNOWN = -1001
LATEST = -1
Place = tuple[str, int]


class Assigned:
    """Represents one partition while it is assigned; `position` None: nothing was read yet."""

    def __init__(self, place: Place, offset: int) -> None:
        self.place = place
        self.fetch_offset = offset
        self.position: int | None = None
        self.is_paused = False
        self.has_failed = False
        self.queued = 0
        self.high_watermark = UNKNOWN
        """Of the last fetch."""


class Queued(NamedTuple):
    """Represents a queued item for the application: a message, or the position behind a marker."""

    assigned: Assigned
    next_offset: int
    message: Message | None


class SimConsumer:
    """Stands in for confluent-kafka's Consumer on the simulated network."""

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self._client = Client(process, str(settings["client.id"]))
        self._process = process
        self._is_committed = settings.get("isolation.level") == "read_committed"
        self._assigned: dict[Place, Assigned] = {}
        self._queue: deque[Queued] = deque()
        self._arrived: Any = None
        self._changed = process.world.loop.create_future()
        self._is_closed = False
        process.begin(self._fetch())

    # Called by the application

    def incremental_assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._process.yield_turn()
        for each in partitions:
            place = each.topic, each.partition
            assert place not in self._assigned, f"{place} is assigned twice"
            self._assigned[place] = Assigned(place, each.offset)
        self._wake()

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        self._process.yield_turn()
        for each in partitions:
            del self._assigned[each.topic, each.partition]

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        return self._client.list_topics(topic, timeout)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*place) for place in self._assigned]

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop prefetched records, as librdkafka does, and fetch them again later."""
        self._process.yield_turn()
        for each in partitions:
            assigned = self._assigned[each.topic, each.partition]
            assigned.is_paused = True
            self._forget(assigned)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._process.yield_turn()
        for each in partitions:
            self._assigned[each.topic, each.partition].is_paused = False
        self._wake()

    def seek(self, partition: TopicPartition) -> None:
        self._process.yield_turn()
        place = partition.topic, partition.partition
        before = self._assigned[place]
        self._assigned[place] = Assigned(place, partition.offset)
        self._assigned[place].is_paused = before.is_paused
        self._wake()

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return so many messages, or fewer if the time is up."""
        process, world = self._process, self._process.world
        process.yield_turn()
        deadline_ms = world.loop.elapsed_ms + max(timeout, 0) * 1_000
        taken: list[Message] = []
        while True:
            while self._queue and len(taken) < num_messages:
                self._take(taken)
            left_s = (deadline_ms - world.loop.elapsed_ms) / 1_000
            if len(taken) >= num_messages or left_s <= 0:
                break
            self._arrived = world.loop.create_future()
            process.wait_for(self._arrived, left_s)
        if self._assigned:
            self._wake()
        return taken

    def poll(self, timeout: float = -1) -> Message | None:
        found = self.consume(1, timeout)
        return found[0] if found else None

    def position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        self._process.yield_turn()
        found = []
        for each in partitions:
            assigned = self._assigned.get((each.topic, each.partition))
            position = None if assigned is None else assigned.position
            found.append(
                TopicPartition(
                    each.topic, each.partition, UNKNOWN if position is None else position
                )
            )
        return found

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Return the last fetch's high watermark, or else request the end of what can be read."""
        self._process.yield_turn()
        if cached:
            assigned = self._assigned[partition.topic, partition.partition]
            return UNKNOWN, assigned.high_watermark
        isolation = 1 if self._is_committed else 0
        work = self._client.list_offset(partition, LATEST, isolation)
        task = self._process.call(work, None if timeout < 0 else timeout)
        if task is None:
            raise raised(KafkaError._TIMED_OUT, "no answer", retriable=True)
        try:
            return UNKNOWN, int(task.result().offset)
        except Failed as error:
            raise raised(int(error.code), error.code.name) from None

    def close(self) -> None:
        self._process.yield_turn()
        self._is_closed = True
        self._assigned.clear()
        self._wake()

    # Inside

    def _take(self, taken: list[Message]) -> None:
        assigned, next_offset, message = self._queue.popleft()
        assigned.queued -= 1
        if self._assigned.get(assigned.place) is not assigned:
            return  # of an assignment that is over
        if next_offset >= 0:
            assigned.position = next_offset
        if message is not None:
            taken.append(message)

    def _forget(self, assigned: Assigned) -> None:
        mine = [each for each in self._queue if each.assigned is assigned]
        if mine:
            first = mine[0].message
            if first is not None and first.error() is None:
                assigned.fetch_offset = first.offset()
            else:
                assigned.fetch_offset = min(assigned.fetch_offset, max(mine[0].next_offset, 0))
            self._queue = deque(each for each in self._queue if each.assigned is not assigned)
            assigned.queued = 0

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    async def _fetch(self) -> None:
        loop = self._process.world.loop
        while not self._is_closed:
            targets = [
                each
                for each in self._assigned.values()
                if not each.is_paused and not each.has_failed and each.queued < QUEUED_MAX
            ]
            if targets and not (targets := self._on_time(targets)):
                await self._process.sleep_ms(RETRY_MS)
                continue
            if not targets:
                self._changed = loop.create_future()
                await self._process.await_response(self._changed)
                continue
            offsets = [each.fetch_offset for each in targets]
            try:
                answer = await self._client.send_once(FETCH, 12, self._request(targets))
            except Unanswered:
                await self._process.sleep_ms(RETRY_MS)
                continue
            if not self._receive(targets, offsets, answer):
                await self._process.sleep_ms(RETRY_MS)

    def _on_time(self, targets: list[Assigned]) -> list[Assigned]:
        """Leave out the partitions whose brokers are slow this time."""
        world: Any = self._process.world
        chance, random = world.late_partitions, self._process.random
        return [each for each in targets if not chance or random.random() >= chance]

    def _request(self, targets: list[Assigned]) -> dict[str, Any]:
        topics: dict[str, list[dict[str, int]]] = {}
        for each in targets:
            topic, number = each.place
            topics.setdefault(topic, []).append(
                {
                    "partition": number,
                    "fetch_offset": each.fetch_offset,
                    "partition_max_bytes": FETCH_BYTES,
                }
            )
        return {
            "max_wait": WAIT_MS,
            "min_bytes": 1,
            "max_bytes": 10 * FETCH_BYTES,
            "isolation_level": 1 if self._is_committed else 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": name, "partitions": each} for name, each in topics.items()],
            "forgotten_topics_data": [],
        }

    def _receive(self, targets: list[Assigned], offsets: list[int], answer: Any) -> bool:
        """Handle a response; return False if something must be requested again later."""
        found = {
            (str(topic.topic), part.partition_index): part
            for topic in answer.responses
            for part in topic.partitions
        }
        fine = bool(answer.error_code == 0)
        for assigned, offset in zip(targets, offsets, strict=True):
            part = found.get(assigned.place)
            is_current = self._assigned.get(assigned.place) is assigned
            if part is None or not is_current or assigned.fetch_offset != offset:
                continue
            code = Code(part.error_code)
            if code is Code.NONE:
                assigned.high_watermark = part.high_watermark
                if not assigned.is_paused:
                    self._queue_up(assigned, part)
            elif code is Code.OFFSET_OUT_OF_RANGE:
                self._fail(assigned, KafkaError._AUTO_OFFSET_RESET, f"{offset} is out of range")
            elif code in RETRIABLE:
                fine = False
            else:
                self._fail(assigned, int(code), code.name)
        if self._queue and self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)
        return fine

    def _fail(self, assigned: Assigned, code: int, why: str) -> None:
        assigned.has_failed = True
        topic, number = assigned.place
        error = KafkaError(code, why)
        message = Message(topic=topic, partition=number, offset=assigned.fetch_offset, error=error)
        self._queue.append(Queued(assigned, -1, message))
        assigned.queued += 1

    def _queue_up(self, assigned: Assigned, part: Any) -> None:
        firsts = sorted((a.first_offset, a.producer_id) for a in part.aborted_transactions or ())
        aborted: set[int] = set()
        for batch in decode(part.records):
            while firsts and firsts[0][0] <= batch.last_offset:
                aborted.add(firsts.pop(0)[1])
            if batch.is_control:
                aborted.discard(batch.producer_id)
                self._queue.append(Queued(assigned, batch.last_offset + 1, None))
                assigned.queued += 1
            elif not (batch.is_transactional and batch.producer_id in aborted):
                self._queue_records(assigned, batch)
            assigned.fetch_offset = batch.last_offset + 1

    def _queue_records(self, assigned: Assigned, batch: Batch) -> None:
        topic, number = assigned.place
        for offset, time_ms, (key, value) in zip(
            batch.offsets, batch.timestamps_ms, batch.records, strict=True
        ):
            if offset < assigned.fetch_offset:
                continue
            message = Message(
                topic=topic,
                partition=number,
                offset=offset,
                key=key,
                value=value,
                timestamp=(1, time_ms),
            )
            self._queue.append(Queued(assigned, offset + 1, message))
            assigned.queued += 1
