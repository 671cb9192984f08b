"""Handles DeleteTopics, which deletes topics and their data, by name or by id.

Behaviour: each topic has a result of its own and is deleted when that is sent. A name or an id that
stands in the request twice, or a name and the id of the same topic, is answered once, with
INVALID_REQUEST, and deletes nothing. Offsets that groups have committed for the topics are deleted
before the response, except in a shard that is being loaded, is damaged or refuses to delete them
(see `groups.deleted_topics`). Until all shards that are not damaged have deleted them, the topics'
names can't be used again.
`delete.topic.enable=false` refuses all (TOPIC_DELETION_DISABLED).
Versions: 3 TOPIC_DELETION_DISABLED, 4 flexible, 5 error messages, 6 topic ids (KIP-516).
Simplifications: the time-out is ignored. Kafka deletes internal topics on request; here they are
refused (INVALID_TOPIC_EXCEPTION), because they hold the coordinators' state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from coordinator.api.context import Context
from coordinator.api.waiting import answer_of
from coordinator.errors import Code, Refused
from coordinator.log.topics import Topic

API_KEY = 20
VERSIONS = range(1, 7)

_DISABLED = "Topic deletion is disabled."


class _Asked(NamedTuple):
    name: str | None
    topic_id: UUID | None


def handle(request: Any, context: Context) -> Any:
    if not context.broker.config.delete_topic_enable:
        code = Code.TOPIC_DELETION_DISABLED if context.version >= 3 else Code.INVALID_REQUEST
        return _refuse(request, context, Refused(code, _DISABLED))
    results = list(_answers(_asked(request, context), context))

    def build_response(error: Exception | None) -> Any:
        if error is not None:
            raise error
        return context.reply(responses=results)

    return answer_of(context.broker.coordinators.deleted_topics.wait, build_response)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every topic."""
    return _refuse(request, context, Refused(code))


def _refuse(request: Any, context: Context, refused: Refused) -> Any:
    return context.reply(
        responses=[_answer(*requested, refused) for requested in _asked(request, context)]
    )


def _asked(request: Any, context: Context) -> list[_Asked]:
    if context.version >= 6:
        return [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    return [_Asked(name, None) for name in request.topic_names]


def _answers(asked: list[_Asked], context: Context) -> Iterator[dict[str, Any]]:
    """Delete the requested topics, and yield a result for each, once however often it is named."""
    topics = context.broker.topics
    times_named = Counter(asked)
    ids = {each.topic_id for each in asked if each.name is None}
    by_both_ways = {
        topic.id
        for topic in (topics.get(each.name) for each in asked if each.name is not None)
        if topic is not None and topic.id in ids
    }
    for each, times in times_named.items():
        topic = _find(each, context)
        if topic is not None and topic.id in by_both_ways:
            if each.name is not None:
                message = "The provided topic name maps to an ID that was already supplied."
                yield _answer(each.name, topic.id, Refused(Code.INVALID_REQUEST, message))
            continue
        try:
            _check(each, times)
            found = _existing(each, topic)
        except Refused as refused:
            yield _answer(*each, refused)
        else:
            yield _answer(found.name, found.id, _delete(found, context))


def _find(asked: _Asked, context: Context) -> Topic | None:
    topics = context.broker.topics
    return topics.by_id(asked.topic_id) if asked.name is None else topics.get(asked.name)


def _check(asked: _Asked, times: int) -> None:
    """Raise Refused(INVALID_REQUEST) unless exactly a name or an id is given, and only once."""
    if asked.name is not None and asked.topic_id is not None:
        message = "You may not specify both topic name and topic id."
    elif asked.name is None and asked.topic_id is None:
        message = "Neither topic name nor id were specified."
    elif times > 1:
        message = f"Duplicate topic {'name' if asked.topic_id is None else 'id'}."
    else:
        return
    raise Refused(Code.INVALID_REQUEST, message)


def _existing(asked: _Asked, topic: Topic | None) -> Topic:
    if topic is not None:
        return topic
    if asked.name is not None:
        message = "This server does not host this topic-partition."
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    raise Refused(Code.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def _delete(topic: Topic, context: Context) -> Refused:
    """Delete the topic and return why it was not deleted, with code NONE if it was."""
    try:
        if topic.is_internal:
            raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
        context.broker.topics.delete(topic)
    except Refused as refused:
        return refused
    return Refused(Code.NONE)


def _answer(name: str | None, topic_id: UUID | None, refused: Refused) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": refused.code,
        "error_message": refused.message or None,
    }
