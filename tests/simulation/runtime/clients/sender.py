"""Run a producer's background work: own its id, number batches, and deliver them to the log.

One batch of a partition at a time is in transit; it is sent again until it is answered, and taken
once, by its sequence. Which refusal ends what is in the table below: librdkafka 2.16's, for
transactions v1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message

from coordinator.errors import Code
from streams.common.partitioning import partition_for_key
from tests.conformance.batches import encode
from tests.simulation.loop import Unanswered
from tests.simulation.runtime.clients.client import RETRIABLE, RETRY_MS, Client, Failed
from tests.simulation.runtime.process import Process

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 0, 22, 24, 25, 26
TXN_OFFSET_COMMIT = 28
BATCH_RECORDS = 50
Place = tuple[str, int]

FENCED = frozenset({Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED})
FATAL = {
    INIT_PRODUCER_ID: FENCED
    | {
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
    },
    ADD_PARTITIONS: FENCED | {Code.INVALID_TXN_STATE},
    ADD_OFFSETS: {Code.INVALID_PRODUCER_EPOCH, Code.INVALID_TXN_STATE},
    TXN_OFFSET_COMMIT: {
        Code.INVALID_PRODUCER_EPOCH,
        Code.INVALID_TXN_STATE,
        Code.INVALID_PRODUCER_ID_MAPPING,
    },
    END_TXN: FENCED | {Code.INVALID_TXN_STATE},
    PRODUCE: {Code.INVALID_PRODUCER_EPOCH, Code.OUT_OF_ORDER_SEQUENCE_NUMBER},
}
OF_A_RECORD = frozenset({Code.INVALID_TIMESTAMP, Code.INVALID_RECORD, Code.MESSAGE_TOO_LARGE})
"""Refusals of a batch for one of its records: all of its reports have the code."""
TAKEN = frozenset({Code.NONE, Code.DUPLICATE_SEQUENCE_NUMBER})


class State(Enum):
    INIT = auto()
    READY = auto()
    IN_TXN = auto()
    ABORTABLE = auto()
    FATAL = auto()


class Record(NamedTuple):
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    report: Callable[[Any, Any], None] | None


class Sender:
    """Delivers records in the background; `SimProducer` advances `_state`."""

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self._client = Client(process, str(settings["client.id"]))
        self._process = process
        self._loop = process.world.loop
        self._id: str | None = settings.get("transactional.id")
        self._timeout_ms = int(settings.get("transaction.timeout.ms", 60_000))
        self._linger_ms = float(settings.get("linger.ms", 5))
        self._on_delivery = settings.get("on_delivery")
        self._reports_failures_only = bool(settings.get("delivery.report.only.error"))
        self._state = State.INIT
        self._error: KafkaError | None = None
        self._producer_id = self._epoch = -1
        self._sequences: dict[Place, int] = {}
        self._registered: set[Place] = set()
        self._has_offsets = False
        self._may_arrive = False  # a batch whose answer never came
        self._waiting: deque[Record] = deque()
        self._sending = 0
        self._reports: deque[tuple[Callable[[Any, Any], None], KafkaError | None, Message]] = (
            deque()
        )
        self._counts: dict[str, int] = {}
        self._is_flushing = False
        self._is_given_up = False
        self._changed = self._loop.create_future()
        self._work: list[Any] = []
        self._begin(self._send())

    def __len__(self) -> int:
        return len(self._waiting) + self._sending

    def _begin(self, work: Coroutine[Any, Any, None]) -> Any:
        task = self._process.begin(work)
        self._work.append(task)
        return task

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    def _refused(self, api_key: int, code: Code) -> None:
        """Fail the producer or its transaction, as librdkafka's table says for the code."""
        if self._state is State.FATAL:
            return
        if code in FATAL[api_key]:
            self._state = State.FATAL
            fenced = code in FENCED
            self._error = KafkaError(
                KafkaError._FENCED if fenced else int(code), code.name, fatal=True
            )
        elif self._id is not None and self._state is not State.ABORTABLE:
            self._state = State.ABORTABLE
            self._error = KafkaError(int(code), code.name, txn_requires_abort=True)
        if self._id is not None or self._state is State.FATAL:
            self._fail_waiting(KafkaError._PURGE_QUEUE)

    def _fail_waiting(self, code: int) -> None:
        while self._waiting:
            self._report(self._waiting.popleft(), KafkaError(code), -1, 0)

    def _report(self, record: Record, error: KafkaError | None, offset: int, number: int) -> None:
        if record.report is not None and (error is not None or not self._reports_failures_only):
            message = Message(
                topic=record.topic, partition=number, offset=offset, key=record.key, error=error
            )
            self._reports.append((record.report, error, message))

    async def _ask(
        self,
        api_key: int,
        version: int,
        given: dict[str, Any],
        code_of: Callable[[Any], int],
        *,
        retry_ms: float = RETRY_MS,
        may_be_late: bool = False,
    ) -> Any:
        if api_key != TXN_OFFSET_COMMIT:  # which goes to the group's coordinator
            await self._wait_for_coordinator()
        try:
            return await self._client.send_request(
                api_key, version, given, code_of, retry_ms=retry_ms, may_be_late=may_be_late
            )
        except Failed as error:
            self._refused(api_key, error.code)
            raise

    async def _wait_for_coordinator(self) -> None:
        """Retry for as long as the coordinator of the transactional id answers that it loads."""
        while self._id is not None and self._process.world.is_coordinator_silent(self._id):
            await self._process.sleep_ms(RETRY_MS)

    async def _init(self, producer_id: int, epoch: int) -> None:
        given = {
            "transactional_id": self._id,
            "transaction_timeout": self._timeout_ms,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        # It retries at any other error.
        while True:
            await self._wait_for_coordinator()
            try:
                answer = await self._client.send_request(
                    INIT_PRODUCER_ID, 4, given, lambda answer: answer.error_code, may_be_late=True
                )
                break
            except Failed as error:
                if error.code in FATAL[INIT_PRODUCER_ID] or producer_id >= 0:
                    self._refused(INIT_PRODUCER_ID, error.code)
                    raise
            await self._process.sleep_ms(500)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}

    async def _send(self) -> None:
        while not self._is_given_up:
            if not self._waiting:
                self._changed = self._loop.create_future()
                await self._process.await_response(self._changed)
                continue
            if not self._is_flushing:
                await self._process.sleep_ms(self._linger_ms)
            if self._producer_id < 0:
                await self._init(-1, -1)
            batches = await self._batches()
            for place, records in batches.items():
                if self._id is not None and self._state is not State.IN_TXN:
                    self._drop(records, place)
                    continue
                await self._deliver(place, records)

    async def _batches(self) -> dict[Place, list[Record]]:
        """Take up to a batch for each partition from the waiting records; leave the rest."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._sending = len(taken)
        batches: dict[Place, list[Record]] = {}
        left: list[Record] = []
        for record in taken:
            number = record.partition
            if number < 0:
                count = self._counts.get(record.topic) or await self._count(record.topic)
                number = partition_for_key(record.key or b"", count)
            batch = batches.setdefault((record.topic, number), [])
            (batch if len(batch) < BATCH_RECORDS else left).append(record)
        self._waiting.extendleft(reversed(left))
        self._sending -= len(left)
        return batches

    async def _count(self, topic: str) -> int:
        while True:
            found = (await self._client.metadata([topic])).get(topic)
            if found is not None:
                self._counts[topic] = len(found.partitions)
                return self._counts[topic]
            await self._process.sleep_ms(RETRY_MS)

    def _drop(
        self, records: list[Record], place: Place, code: int = KafkaError._PURGE_QUEUE
    ) -> None:
        for record in records:
            self._report(record, KafkaError(code), -1, place[1])
        self._sending -= len(records)

    async def _deliver(self, place: Place, records: list[Record]) -> None:
        try:
            if self._id is not None and place not in self._registered:
                await self._register(place)
            base_offset = await self._produce(place, records)
        except Failed as error:
            is_refused = error.code in OF_A_RECORD
            self._drop(records, place, int(error.code) if is_refused else KafkaError._PURGE_QUEUE)
            return
        for index, record in enumerate(records):
            offset = base_offset + index if base_offset >= 0 else -1
            self._report(record, None, offset, place[1])
        self._sending -= len(records)

    async def _register(self, place: Place) -> None:
        given = {
            "v3_and_below_transactional_id": self._id,
            "v3_and_below_producer_id": self._producer_id,
            "v3_and_below_producer_epoch": self._epoch,
            "v3_and_below_topics": [{"name": place[0], "partitions": [place[1]]}],
        }
        await self._ask(
            ADD_PARTITIONS,
            0,
            given,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            retry_ms=20,
            may_be_late=True,
        )
        self._registered.add(place)

    async def _produce(self, place: Place, records: list[Record]) -> int:
        """Produce a batch; return its first offset, -1 for a repetition that the broker forgot."""
        sequence = self._sequences.get(place, 0)
        data = encode(
            *[(record.key, record.value) for record in records],
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=sequence,
            transactional=self._id is not None,
            timestamps_ms=[record.timestamp_ms for record in records],
        )
        given: dict[str, Any] = {
            "transactional_id": self._id,
            "acks": -1,
            "timeout": 1_000,
            "topic_data": [
                {"name": place[0], "partition_data": [{"index": place[1], "records": data}]}
            ],
        }
        while not self._is_given_up:
            try:
                answer = await self._client.send_once(PRODUCE, 10, given, may_be_late=True)
            except Unanswered:
                self._may_arrive = True
            else:
                found = answer.responses[0].partition_responses[0]
                code = Code(found.error_code)
                if code in TAKEN:
                    self._sequences[place] = sequence + len(records)
                    return int(found.base_offset)
                if code not in RETRIABLE:
                    self._refused(PRODUCE, code)
                    raise Failed(code)
            await self._process.sleep_ms(RETRY_MS)
        raise Failed(Code.REQUEST_TIMED_OUT)
