"""DeleteTopics: remove topics and their data, by name or by id.

Behaviour: each topic is answered for itself and is gone when it is. `delete.topic.enable=false`
refuses all (TOPIC_DELETION_DISABLED). The broker's own topics are not deleted
(INVALID_TOPIC_EXCEPTION): its state stands in them.
Versions: 4 flexible, 5 error messages, 6 topic ids (KIP-516).
Simplifications: the time-out is not looked at.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 20
VERSIONS = range(1, 7)


def handle(request: Any, context: Context) -> Any:
    return context.reply(responses=[_delete(*asked, context) for asked in _asked(request, context)])


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every topic."""
    answers = [
        _answer(name, topic_id, Refused(code)) for name, topic_id in _asked(request, context)
    ]
    return context.reply(responses=answers)


def _asked(request: Any, context: Context) -> list[tuple[str | None, UUID | None]]:
    if context.version >= 6:
        return [(topic.name, topic.topic_id) for topic in request.topics]
    return [(name, None) for name in request.topic_names]


def _delete(name: str | None, topic_id: UUID | None, context: Context) -> dict[str, Any]:
    topics = context.broker.topics
    if name is not None and topic_id is not None:
        return _answer(name, topic_id, Refused(Code.INVALID_REQUEST, "name or id, not both"))
    topic = topics.get(name) if name is not None else topics.by_id(topic_id)
    if topic is None:
        by_name = name is not None
        code = Code.UNKNOWN_TOPIC_OR_PARTITION if by_name else Code.UNKNOWN_TOPIC_ID
        return _answer(name, topic_id, Refused(code))
    try:
        if not context.broker.config.delete_topic_enable:
            raise Refused(Code.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
        if topic.is_internal:
            raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
        topics.delete(topic)
    except Refused as refused:
        return _answer(topic.name, topic.id, refused)
    return _answer(topic.name, topic.id, Refused(Code.NONE))


def _answer(name: str | None, topic_id: UUID | None, refused: Refused) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": refused.code,
        "error_message": refused.message or None,
    }
