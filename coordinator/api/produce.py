"""Handle Produce, which appends one batch to each partition of the request.

Behaviour: each partition has a result of its own. A batch is checked (`log/batch_validation`), then
its producer (`log/producers`); the first batch of a transaction on a partition needs the partition
to be registered with the transaction coordinator. The batch is in the file before the answer goes
out. acks 1 and -1 are the same with one replica; acks 0 gets no answer, and an error closes the
connection, as Kafka does it.
Versions: 3-13; 0-2 are advertised and not served, as in Kafka: old librdkafka looks for them.
7 zstd (KIP-110), 8 error messages (KIP-467), 9 flexible, 11 TRANSACTION_ABORTABLE (KIP-890),
13 topic ids (KIP-516).
12 adds the partition to the transaction by itself (transactions v2), once for each partition and
transaction.
Simplifications: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.log.batch import COMPRESSION_MASK, RecordBatch, is_transactional_batch
from coordinator.log.batch_validation import (
    RejectedRecords,
    create_timestamp_refusal,
    parse_single_batch,
    validate_produced_batch,
)
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import BrokerTopic, partition_of
from coordinator.wire.connection import Disconnect

if TYPE_CHECKING:
    from kio.schema.produce.v13.request import PartitionProduceData, ProduceRequest
    from kio.schema.produce.v13.response import ProduceResponse

API_KEY = 0
VERSIONS = range(3, 14)
ADVERTISED = range(14)

_ZSTD = 4
# Refusals without the log start offset, which the response has for other refusals of an append.
_CODES_WITHOUT_START_OFFSET = (
    Code.MESSAGE_TOO_LARGE,
    Code.CORRUPT_MESSAGE,
    Code.KAFKA_STORAGE_ERROR,
)
# Codes of a coordinator that moves or loads; the producer is to try again.
_RETRIABLE = frozenset(
    {
        Code.NETWORK_EXCEPTION,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
    }
)


def handle_request(
    request: ProduceRequest, context: RequestContext[ProduceResponse]
) -> ProduceResponse | None:
    if request.acks not in (-1, 0, 1):
        return build_error_response(request, context, Code.INVALID_REQUIRED_ACKS)
    if request.transactional_id is None and _has_transactional_batch(request):
        return build_error_response(request, context, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = context.services.topics
    by_id = context.version >= 13
    responses = []
    for name, partitions in _group_by_topic(request, by_id).items():
        topic = topics.by_id(name) if by_id else topics.get(name)
        results = [
            _append_batch(requested, topic, request, context) for requested in partitions.values()
        ]
        responses.append(_build_topic_result(name, by_id, results))
    if request.acks == 0:
        _raise_disconnect_if_failed(responses)
        return None
    return context.build_response(responses=responses)


def build_error_response(
    request: ProduceRequest, context: RequestContext[ProduceResponse], code: Code
) -> ProduceResponse:
    """Return a response with `code` for every partition.

    Raises: Disconnect with acks 0, as there is no response then.
    """
    if request.acks == 0:
        raise Disconnect(f"Produce with acks 0: {code.name}")
    by_id = context.version >= 13
    return context.build_response(
        responses=[
            _build_topic_result(
                name, by_id, [_build_failed_partition(index, Refused(code)) for index in partitions]
            )
            for name, partitions in _group_by_topic(request, by_id).items()
        ]
    )


def _group_by_topic(
    request: ProduceRequest, by_id: bool
) -> dict[Any, dict[int, PartitionProduceData]]:
    """Group the request by topic name or id and partition; of one that comes twice, the latter."""
    topics: dict[Any, dict[int, PartitionProduceData]] = {}
    for topic in request.topic_data:
        key = topic.topic_id if by_id else topic.name  # type: ignore[attr-defined]  # up to version 12
        partitions = topics.setdefault(key, {})
        for partition in topic.partition_data:
            partitions[partition.index] = partition
    return topics


def _has_transactional_batch(request: ProduceRequest) -> bool:
    return any(
        is_transactional_batch(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
        if partition.records
    )


def _append_batch(
    requested: PartitionProduceData,
    topic: BrokerTopic | None,
    request: ProduceRequest,
    context: RequestContext,
) -> dict[str, Any]:
    partition = partition_of(topic, requested.index)
    start_offset = -1
    try:
        if topic is None or partition is None:
            unknown_id = topic is None and context.version >= 13
            raise Refused(Code.UNKNOWN_TOPIC_ID if unknown_id else Code.UNKNOWN_TOPIC_OR_PARTITION)
        batch = parse_single_batch(requested.records)
        if context.version < 7 and batch.attributes & COMPRESSION_MASK == _ZSTD:
            raise Refused(Code.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
        if topic.is_internal:
            raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
        if partition.damage is not None:
            partition.check_undamaged()
        start_offset = partition.start_offset
        validate_produced_batch(batch, partition.settings)
        if batch.is_transactional:
            _verify_transaction(batch, partition, request.transactional_id, context)
        appended = partition.append_produced(batch)
    except Refused as refused:
        if refused.code in _CODES_WITHOUT_START_OFFSET:
            start_offset = -1
        elif refused.code == Code.INVALID_TIMESTAMP and partition is not None:
            refused = _add_wrong_timestamps_to_refusal(refused, batch, partition, context)
        return _build_failed_partition(requested.index, refused, start_offset)
    return {
        "index": requested.index,
        "base_offset": appended.base_offset,
        "log_append_time": appended.log_append_time_ms,
        "log_start_offset": partition.start_offset,
        "record_errors": (),
    }


def _add_wrong_timestamps_to_refusal(
    refusal: Refused, batch: RecordBatch, partition: PartitionLog, context: RequestContext
) -> Refused:
    """Return the refusal of a batch, naming records whose timestamps aren't accepted now."""
    now_ms, settings = context.services.clock.now_ms(), partition.settings
    return create_timestamp_refusal(
        batch,
        refusal,
        now_ms - settings.timestamp_before_max_ms,
        now_ms + settings.timestamp_after_max_ms,
    )


def _verify_transaction(
    batch: RecordBatch,
    partition: PartitionLog,
    transactional_id: str | None,
    context: RequestContext,
) -> None:
    """Raise Refused unless the batch's transaction has its partition; from version 12 on add it."""
    producers = partition.producers
    if producers.has_open_transaction(batch.producer_id, batch.producer_epoch):
        return
    producer = producers.find_producer(batch.producer_id)
    if producer is not None and batch.producer_epoch < producer.epoch:
        return  # the log refuses it, whatever the transaction's state
    producers.track_lowest_sequence(batch)
    code = context.services.coordinators.verify_transactional_append(
        transactional_id,
        batch.producer_id,
        batch.producer_epoch,
        (partition.topic, partition.index),
        implicit=context.version >= 12,
    )
    if code in _RETRIABLE or (code == Code.CONCURRENT_TRANSACTIONS and context.version < 12):
        code = Code.NOT_ENOUGH_REPLICAS
    elif code == Code.INVALID_TXN_STATE and context.version >= 11:
        code = Code.TRANSACTION_ABORTABLE
    elif (
        code == Code.NONE and producer is None and batch.base_sequence > 0 and context.version >= 12
    ):
        # Every transaction of transactions v2 has its own epoch, so its sequences begin with 0.
        code = Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    if code != Code.NONE:
        raise Refused(code, f"{partition.topic}-{partition.index} is not in the transaction")


def _build_topic_result(
    name_or_id: str | UUID, by_id: bool, answers: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"topic_id" if by_id else "name": name_or_id, "partition_responses": answers}


def _build_failed_partition(index: int, refusal: Refused, start_offset: int = -1) -> dict[str, Any]:
    errors = refusal.errors if isinstance(refusal, RejectedRecords) else ()
    return {
        "index": index,
        "error_code": refusal.code,
        "base_offset": -1,
        "log_start_offset": start_offset,
        "record_errors": [
            {"batch_index": at, "batch_index_error_message": message} for at, message in errors
        ],
        "error_message": refusal.message or None,
    }


def _raise_disconnect_if_failed(responses: list[dict[str, Any]]) -> None:
    for response in responses:
        for answer in response["partition_responses"]:
            if "error_code" in answer:
                raise Disconnect(f"Produce with acks 0: {answer['error_code'].name}")
