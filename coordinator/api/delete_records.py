"""DeleteRecords: let a partition's log begin at a later offset.

Behaviour: each partition is answered for itself with where its log begins then. -1 means the high
watermark; an offset that is gone already changes nothing. Only whole segments leave the disk, but
nothing before the new start is read any more, which survives a restart.
Versions: 0-2; 2 flexible (KIP-107).
Simplifications: there are no replicas to wait for, so the time-out is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 21
VERSIONS = range(3)

_UNKNOWN_OFFSET = -1


def handle(request: Any, context: Context) -> Any:
    def answer(topic: str, asked: Any) -> dict[str, Any]:
        try:
            return {"low_watermark": _delete(topic, asked, context), "error_code": Code.NONE}
        except Refused as refused:
            return _failed(refused.code)

    return _reply(request, context, answer)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every partition."""
    return _reply(request, context, lambda topic, asked: _failed(code))


def _reply(request: Any, context: Context, answer: Callable[[str, Any], dict[str, Any]]) -> Any:
    return context.reply(
        topics=[
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": one.partition_index, **answer(topic.name, one)}
                    for one in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    )


def _delete(name: str, asked: Any, context: Context) -> int:
    """Where the log begins now. Refused: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, and
    see `Partition.delete_records_before`."""
    topics = context.broker.topics
    topic, partition = topics.get(name), topics.partition(name, asked.partition_index)
    if topic is None or partition is None:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{name}-{asked.partition_index}")
    if topic.is_internal:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{name} is the broker's own")
    return partition.delete_records_before(asked.offset)


def _failed(code: Code) -> dict[str, Any]:
    return {"low_watermark": _UNKNOWN_OFFSET, "error_code": code}
