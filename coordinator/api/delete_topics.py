"""DeleteTopics: remove topics and their data, by name or by id.

Behaviour: each topic is answered for itself and is gone when it is. A name or an id that stands in
the request twice, or a name and the id of the same topic, is answered once, with INVALID_REQUEST,
and deletes nothing. What groups have committed for the topics is gone when they are answered, but
for a shard that is being loaded, is damaged or refuses to remove it (see `groups.deleted_topics`).
Until it is gone from all shards that are not damaged, the topics' names can't be used again.
`delete.topic.enable=false` refuses all (TOPIC_DELETION_DISABLED).
Versions: 3 TOPIC_DELETION_DISABLED, 4 flexible, 5 error messages, 6 topic ids (KIP-516).
Simplifications: the time-out is not looked at. Kafka deletes its own topics if it is told to; here
they are refused (INVALID_TOPIC_EXCEPTION): the coordinators' state stands in them.
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
    answers = list(_answers(_asked(request, context), context))

    def reply(error: Exception | None) -> Any:
        if error is not None:
            raise error
        return context.reply(responses=answers)

    return answer_of(context.broker.coordinators.deleted_topics.wait, reply)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every topic."""
    return _refuse(request, context, Refused(code))


def _refuse(request: Any, context: Context, refused: Refused) -> Any:
    return context.reply(responses=[_answer(*asked, refused) for asked in _asked(request, context)])


def _asked(request: Any, context: Context) -> list[_Asked]:
    if context.version >= 6:
        return [_Asked(topic.name, topic.topic_id) for topic in request.topics]
    return [_Asked(name, None) for name in request.topic_names]


def _answers(asked: list[_Asked], context: Context) -> Iterator[dict[str, Any]]:
    """An answer for each topic that is asked for, whatever the times."""
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
    """Refused(INVALID_REQUEST) for what doesn't say which topic is meant."""
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
    """Delete the topic; why it was not, or NONE."""
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
