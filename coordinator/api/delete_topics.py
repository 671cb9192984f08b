"""Handle DeleteTopics, which deletes topics and their data, by name or by id.

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
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.api.deferred_answer import Deferrable, answer_on_callback
from coordinator.errors import SUCCESS, Code, Outcome, Refused
from coordinator.log.topics import BrokerTopic

if TYPE_CHECKING:
    from kio.schema.delete_topics.v6.request import DeleteTopicsRequest
    from kio.schema.delete_topics.v6.response import DeleteTopicsResponse

API_KEY = 20
VERSIONS = range(1, 7)

_DISABLED = "Topic deletion is disabled."


class _RequestedTopic(NamedTuple):
    name: str | None
    topic_id: UUID | None


def handle_request(
    request: DeleteTopicsRequest, context: RequestContext[DeleteTopicsResponse]
) -> Deferrable[DeleteTopicsResponse]:
    if not context.services.config.delete_topic_enable:
        code = Code.TOPIC_DELETION_DISABLED if context.version >= 3 else Code.INVALID_REQUEST
        return _refuse_with_message(request, context, Outcome(code, _DISABLED))
    results = list(_delete_topics(_collect_requested_topics(request, context), context))

    def build_response(error: Exception | None) -> DeleteTopicsResponse:
        if error is not None:
            raise error
        return context.build_response(responses=results)

    return answer_on_callback(
        context.services.coordinators.deleted_topics.notify_when_idle, build_response
    )


def build_error_response(
    request: DeleteTopicsRequest, context: RequestContext[DeleteTopicsResponse], code: Code
) -> DeleteTopicsResponse:
    """Return a response with `code` for every topic."""
    return _refuse_with_message(request, context, Outcome(code))


def _refuse_with_message(
    request: DeleteTopicsRequest, context: RequestContext[DeleteTopicsResponse], outcome: Outcome
) -> DeleteTopicsResponse:
    return context.build_response(
        responses=[
            _build_topic_result(*requested, outcome)
            for requested in _collect_requested_topics(request, context)
        ]
    )


def _collect_requested_topics(
    request: DeleteTopicsRequest, context: RequestContext
) -> list[_RequestedTopic]:
    if context.version >= 6:
        return [_RequestedTopic(topic.name, topic.topic_id) for topic in request.topics]
    return [_RequestedTopic(name, None) for name in request.topic_names]  # type: ignore[attr-defined]  # up to version 5


def _delete_topics(
    requested: list[_RequestedTopic], context: RequestContext
) -> Iterator[dict[str, Any]]:
    """Delete the requested topics, and yield a result for each, once however often it is named."""
    topics = context.services.topics
    times_named = Counter(requested)
    ids = {each.topic_id for each in requested if each.name is None}
    by_both_ways = {
        topic.id
        for topic in (topics.get(each.name) for each in requested if each.name is not None)
        if topic is not None and topic.id in ids
    }
    for each, times in times_named.items():
        topic = _find_topic(each, context)
        if topic is not None and topic.id in by_both_ways:
            if each.name is not None:
                message = "The provided topic name maps to an ID that was already supplied."
                yield _build_topic_result(
                    each.name, topic.id, Outcome(Code.INVALID_REQUEST, message)
                )
            continue
        try:
            _check_topic_reference(each, times)
            found = _require_topic(each, topic)
        except Refused as refused:
            yield _build_topic_result(*each, refused.outcome)
        else:
            yield _build_topic_result(found.name, found.id, _try_delete_topic(found, context))


def _find_topic(requested: _RequestedTopic, context: RequestContext) -> BrokerTopic | None:
    topics = context.services.topics
    return (
        topics.by_id(requested.topic_id) if requested.name is None else topics.get(requested.name)
    )


def _check_topic_reference(requested: _RequestedTopic, times_named: int) -> None:
    """Raise Refused(INVALID_REQUEST) unless exactly a name or an id is given, and only once."""
    if requested.name is not None and requested.topic_id is not None:
        message = "You may not specify both topic name and topic id."
    elif requested.name is None and requested.topic_id is None:
        message = "Neither topic name nor id were specified."
    elif times_named > 1:
        message = f"Duplicate topic {'name' if requested.topic_id is None else 'id'}."
    else:
        return
    raise Refused(Code.INVALID_REQUEST, message)


def _require_topic(requested: _RequestedTopic, topic: BrokerTopic | None) -> BrokerTopic:
    if topic is not None:
        return topic
    if requested.name is not None:
        message = "This server does not host this topic-partition."
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
    raise Refused(Code.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")


def _try_delete_topic(topic: BrokerTopic, context: RequestContext) -> Outcome:
    """Delete the topic and return the outcome: SUCCESS, or why it was not deleted."""
    try:
        if topic.is_internal:
            raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"{topic.name} is the broker's own")
        context.services.topics.delete_topic(topic)
    except Refused as refused:
        return refused.outcome
    return SUCCESS


def _build_topic_result(
    name: str | None, topic_id: UUID | None, outcome: Outcome
) -> dict[str, Any]:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": outcome.code,
        "error_message": outcome.message or None,
    }
