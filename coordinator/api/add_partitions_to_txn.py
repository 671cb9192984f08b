"""Handle AddPartitionsToTxn, which adds partitions to a transaction.

Behaviour: registers partitions in a transaction, opening it if need be. If one of them is unknown
it gets UNKNOWN_TOPIC_OR_PARTITION and the others OPERATION_NOT_ATTEMPTED, and nothing is
registered; internal topics, which clients can't write to, get TOPIC_AUTHORIZATION_FAILED in the
same way. Any other refusal is the code of each partition.
Versions: v2 PRODUCER_FENCED; v3 flexible; v4 (between brokers) several transactions in a request,
and a mode that only verifies; v5 says that the client speaks transactions v2.
Simplifications: none.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from coordinator.api.context import RequestContext
from coordinator.api.coordinator_codes import translate_fenced_code
from coordinator.errors import Code, Refused
from coordinator.log.topics import INTERNAL_TOPICS
from coordinator.transactions.add_partitions import AddPartitionsCommand
from coordinator.transactions.state import V0, V2, TopicPartition

if TYPE_CHECKING:
    from kio.schema.add_partitions_to_txn.v5.request import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnTopic,
    )
    from kio.schema.add_partitions_to_txn.v5.response import AddPartitionsToTxnResponse

API_KEY = 24
VERSIONS = range(6)


def handle_request(
    request: AddPartitionsToTxnRequest, context: RequestContext[AddPartitionsToTxnResponse]
) -> AddPartitionsToTxnResponse:
    if context.version < 4:
        command = AddPartitionsCommand(
            request.v3_and_below_transactional_id,  # type: ignore[attr-defined]  # up to version 3
            request.v3_and_below_producer_id,  # type: ignore[attr-defined]  # up to version 3
            request.v3_and_below_producer_epoch,  # type: ignore[attr-defined]  # up to version 3
            _collect_requested_partitions(request.v3_and_below_topics),  # type: ignore[attr-defined]  # up to version 3
        )
        codes = _add_or_verify_partitions(command, context, verify_only=False)
        return context.build_response(results_by_topic_v3_and_below=_group_results_by_topic(codes))
    results = []
    for transaction in request.transactions:
        command = AddPartitionsCommand(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            _collect_requested_partitions(transaction.topics),
            version=V2 if context.version >= 5 else V0,
        )
        codes = _add_or_verify_partitions(command, context, verify_only=transaction.verify_only)
        results.append(
            {
                "transactional_id": transaction.transactional_id,
                "topic_results": _group_results_by_topic(codes),
            }
        )
    return context.build_response(results_by_transaction=results)


def build_error_response(
    request: AddPartitionsToTxnRequest,
    context: RequestContext[AddPartitionsToTxnResponse],
    code: Code,
) -> AddPartitionsToTxnResponse:
    """Return a response with `code` for every partition; from version 4 on at the top."""
    translated = translate_fenced_code(code, context.version, fenced_since=2)
    if context.version >= 4:
        return context.build_response(error_code=translated, results_by_transaction=())
    partitions = _collect_requested_partitions(request.v3_and_below_topics)  # type: ignore[attr-defined]  # up to version 3
    return context.build_response(
        results_by_topic_v3_and_below=_group_results_by_topic(dict.fromkeys(partitions, translated))
    )


def _collect_requested_partitions(
    topics: Iterable[AddPartitionsToTxnTopic],
) -> frozenset[TopicPartition]:
    return frozenset((topic.name, partition) for topic in topics for partition in topic.partitions)


def _add_or_verify_partitions(
    command: AddPartitionsCommand, context: RequestContext, *, verify_only: bool
) -> dict[TopicPartition, Code]:
    """Add the partitions to the transaction, or only verify them; return a code for each."""
    codes = {tp: _find_partition_code(tp, context) for tp in command.partitions}
    if any(codes.values()):
        return {tp: code or Code.OPERATION_NOT_ATTEMPTED for tp, code in codes.items()}
    if verify_only:
        return {tp: _verify_partition(command, tp, context) for tp in command.partitions}
    try:
        context.services.coordinators.transactions.add_partitions(command)
    except Refused as refused:
        code = translate_fenced_code(refused.code, context.version, fenced_since=2)
        return dict.fromkeys(command.partitions, code)
    return dict.fromkeys(command.partitions, Code.NONE)


def _find_partition_code(partition: TopicPartition, context: RequestContext) -> Code:
    """Return NONE for a partition that can be part of a transaction, else the code.

    Brokers, which send version 4 and later, may name internal topics.
    """
    if context.version < 4 and partition[0] in INTERNAL_TOPICS:
        return Code.TOPIC_AUTHORIZATION_FAILED
    found = context.services.topics.find_partition(*partition)
    if found is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    # The transaction could not be ended there.
    return Code.NONE if found.damage is None else Code.KAFKA_STORAGE_ERROR


def _verify_partition(
    command: AddPartitionsCommand, partition: TopicPartition, context: RequestContext
) -> Code:
    try:
        context.services.coordinators.transactions.verify_partition(
            command.transactional_id,
            command.producer_id,
            command.producer_epoch,
            partition,
            adds_partition=False,
        )
    except Refused as refused:
        if refused.code is Code.INVALID_TXN_STATE:
            return Code.TRANSACTION_ABORTABLE
        return refused.code
    return Code.NONE


def _group_results_by_topic(codes: dict[TopicPartition, Code]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic,
            "results_by_partition": [
                {"partition_index": partition, "partition_error_code": code}
                for (_, partition), code in found
            ],
        }
        for topic, found in groupby(sorted(codes.items()), key=lambda item: item[0][0])
    ]
