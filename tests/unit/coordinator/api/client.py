"""Send requests to a broker's router as bytes, without a socket, and parse the response bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import MISSING, fields, is_dataclass
from io import BytesIO
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from coordinator.broker import Broker
from coordinator.config import BrokerConfig
from coordinator.log.disk import BrokerDisk
from coordinator.log.partition import PartitionLog
from coordinator.wire.codec import build_entity
from coordinator.wire.send_buffer import Answer, SendBuffer
from tests.own_batches import encode_batch
from tests.unit.coordinator.log.logs import NOW_MS, StillClock

CORRELATION_ID = 77
END_TXN = 26


class FakeTimer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeScheduler:
    """Stands in for the scheduler: runs a callback only when a test says that its time has come.

    With `is_held` it doesn't make the calls that are due without a delay either.
    """

    def __init__(self) -> None:
        self.is_held = False
        self.waiting: list[tuple[float, Callable[[], None], FakeTimer]] = []

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer()
        self.waiting.append((delay_ms, callback, timer))
        return timer

    def run_due_now(self) -> None:
        """Make the calls that are due without a delay, as the loop does before it reads again."""
        if self.is_held:
            return
        due = self.pending(0)
        self.waiting = [each for each in self.waiting if each[0] != 0]
        for callback in due:
            callback()

    def pending(self, delay_ms: float) -> list[Callable[[], None]]:
        """Return the callbacks that are scheduled with exactly this delay."""
        return [
            callback
            for delay, callback, timer in self.waiting
            if delay == delay_ms and not timer.cancelled
        ]


class Client:
    """Sends requests to one broker that is loaded from a directory and does not listen.

    Its clock stands still, and its disk is the machine's, unless others are given.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        clock: StillClock | None = None,
        disk: BrokerDisk | None = None,
        **settings: Any,
    ) -> None:
        config = BrokerConfig(
            data_dir=data_dir,
            offsets_topic_num_partitions=1,
            transaction_state_log_num_partitions=1,
            **settings,
        )
        self.scheduler = FakeScheduler()
        self.clock = clock or StillClock()
        self.broker = Broker(config, clock=self.clock, scheduler=self.scheduler, disk=disk)
        self.broker.start_without_listening()
        self._router = self.broker.create_router()

    def ask(self, api_key: int, version: int, /, **given: Any) -> Any:
        """Return the response, which must be ready at once; None if the request has none.

        After EndTxn the markers are written, as nothing is read from clients before that.
        """
        answer = self.send(build_entity(cast(type, load_request_schema(api_key, version)), given))
        if api_key == END_TXN:
            self.scheduler.run_due_now()
        if answer is None:
            return None
        assert isinstance(answer, bytes | list)
        return read_answer(api_key, version, whole(answer))

    async def ask_later(self, api_key: int, version: int, /, **given: Any) -> Any:
        """Send a request and wait until its response is ready."""
        answer = self.send(build_entity(cast(type, load_request_schema(api_key, version)), given))
        assert answer is not None
        assert not isinstance(answer, bytes | list)
        return read_answer(api_key, version, whole(await answer))

    def send(self, request: Any) -> Answer | Awaitable[Answer]:
        return self.send_bytes(request_bytes(request))

    def send_bytes(self, frame: bytes) -> Answer | Awaitable[Answer]:
        return self._router.dispatch_frame(frame, "127.0.0.1")

    def create(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        topic = self.broker.topics.create_topic(
            name, partitions, {key.replace("_", "."): value for key, value in configs.items()}
        )
        return topic.id

    def partition(self, topic: str) -> PartitionLog:
        """Return the log of partition 0 of a topic, which may be a hidden one."""
        found = self.broker.topics.find_including_hidden(topic)
        assert found is not None
        return found.partitions[0]

    def begin(self, *topics: str, timeout_ms: int = 1_000) -> dict[str, int]:
        """Begin a transaction of `app` with partition 0 of each topic; return each one's code."""
        owner = self.ask(22, 4, transactional_id="app", transaction_timeout=timeout_ms)
        answer = self.ask(
            24,
            3,
            v3_and_below_transactional_id="app",
            v3_and_below_producer_id=owner.producer_id,
            v3_and_below_producer_epoch=owner.producer_epoch,
            v3_and_below_topics=[{"name": topic, "partitions": [0]} for topic in topics],
        )
        return {
            topic.name: topic.results_by_partition[0].partition_error_code
            for topic in answer.results_by_topic_v3_and_below
        }

    def produce(
        self,
        topic: str,
        data: bytes,
        *,
        partition: int = 0,
        version: int = 10,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> Any:
        """Send a Produce request for one partition and return that partition's response."""
        answer = self.ask(
            0,
            version,
            transactional_id=transactional_id,
            acks=acks,
            timeout=1_000,
            topic_data=[{"name": topic, "partition_data": [{"index": partition, "records": data}]}],
        )
        return None if answer is None else answer.responses[0].partition_responses[0]


def request_bytes(request: Any) -> bytes:
    """Encode a request as a client frames it, without the length prefix."""
    out = BytesIO()
    out.write(type(request).__api_key__.to_bytes(2, "big"))
    out.write(type(request).__version__.to_bytes(2, "big"))
    out.write(CORRELATION_ID.to_bytes(4, "big"))
    out.write(b"\0\x04test")
    if type(request).__flexible__:
        out.write(b"\0")
    entity_writer(type(request))(out, request)
    return out.getvalue()


def whole(answer: Answer) -> bytes:
    """Return a response's bytes as they go over the wire."""
    outgoing = SendBuffer()
    assert answer is not None
    outgoing.add_pieces([answer] if isinstance(answer, bytes) else answer)
    data = b""
    while outgoing:
        data += outgoing.pop_next_chunk()
    return data


# Delegation tokens have a null time of -1 ms, which kio writes but can't read.
_OF_TOKENS = {38, 39, 40}
_NEVER = b"\xff" * 8


def read_answer(api_key: int, version: int, answer: bytes) -> Any:
    """Parse a response and check that no byte of it is left over."""
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert int.from_bytes(answer[4:8], "big") == CORRELATION_ID
    if api_key in _OF_TOKENS:
        answer = answer.replace(_NEVER, bytes(len(_NEVER)))
    response_type = load_response_schema(api_key, version)
    at = 9 if response_type.__header_schema__.__flexible__ else 8
    response, size = entity_reader(response_type)(answer, at)
    assert at + size == len(answer)
    return response


def batch(*values: bytes, timestamp_ms: int = NOW_MS) -> bytes:
    return encode_batch([(None, value) for value in values], timestamp_ms=timestamp_ms)


def example(entity_type: Any) -> Any:
    """Build a request of this type with one element in each of its fields."""
    return build_entity(entity_type, {f.name: _example(f) for f in fields(entity_type)})


_EXAMPLES: Mapping[str, object] = {
    "string": "x",
    "bytes": b"",
    "records": b"",
    "bool": False,
    "uuid": UUID(int=1),
    "float64": 0.0,
}


def _example(field: Any) -> Any:
    declared = field.type
    if get_origin(declared) is UnionType:
        declared = next(kind for kind in get_args(declared) if kind is not NoneType)
    is_array = get_origin(declared) is tuple
    inner = get_args(declared)[0] if is_array else declared
    if is_dataclass(inner):
        if "tag" in field.metadata and field.default is not MISSING:
            return field.default
        one = example(inner)
    else:
        one = _EXAMPLES.get(field.metadata["kafka_type"], 0)
    return (one,) if is_array else one


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)
