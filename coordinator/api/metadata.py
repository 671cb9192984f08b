"""Metadata: the broker, the topics, and who leads their partitions, which is always this broker.

Behaviour: no list of topics means all of them (in version 0 an empty one). A topic that isn't there
is made with the broker's defaults if the request and `auto.create.topics.enable` allow it, and is
there in the same answer; otherwise UNKNOWN_TOPIC_OR_PARTITION. A name that no topic can have gets
INVALID_TOPIC_EXCEPTION, an unknown id UNKNOWN_TOPIC_ID and no name, as in Kafka (Java's consumer of
a regular expression can't bear that: see `docs/broker.md`). One request makes 100 topics at the
most; the others get LEADER_NOT_AVAILABLE, with which clients ask again.
Versions: 1 null for all, 4 auto-creation on request (KIP-204), 7 leader epochs, 8 authorised
operations (KIP-430), 9 flexible, 10 topic ids (KIP-516), 12 look-up by id (before that an id is
INVALID_REQUEST for all), 13 top-level error.
Simplifications: without an authoriser every operation is allowed.
"""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from coordinator.api.context import Context
from coordinator.errors import Code, Refused
from coordinator.log.topics import HIDDEN_TOPICS, INTERNAL_TOPICS, Topic, check_name

log = logging.getLogger(__name__)

API_KEY = 3
VERSIONS = range(14)

# Bits of what an ACL could allow: all of it.
TOPIC_OPERATIONS = 3_576
CLUSTER_OPERATIONS = 8_096
_NOT_ASKED_FOR = -(2**31)
_FIRST_WITH_IDS = 12
# Topics that one request makes, so that nobody waits for long. Clients ask again for the others.
_CREATED_MAX = 100
# No request for metadata makes these.
UNMADE = INTERNAL_TOPICS | HIDDEN_TOPICS


def handle(request: Any, context: Context) -> Any:
    topics = context.broker.topics
    if context.version < _FIRST_WITH_IDS and any(map(_names_an_id, request.topics or ())):
        raise Refused(Code.INVALID_REQUEST, f"version {context.version} takes no topic ids")
    if request.topics is None or (context.version == 0 and not request.topics):
        answers = [_described(topic, request, context) for topic in topics]
    else:
        answers = _answers(request, context)
    return _reply(context, request, answers)


def refuse(request: Any, context: Context, code: Code) -> Any:
    """The code for every topic that was named, and at the top from version 13 on."""
    unnamed = "" if context.version < _FIRST_WITH_IDS else None
    answers = [
        _failed(unnamed if asked.name is None else asked.name, None, code)
        for asked in request.topics or ()
    ]
    return _reply(context, request, answers, code)


def _names_an_id(asked: Any) -> bool:
    """Versions 10 and 11 have the field, but it must not be used."""
    return asked.name is None or getattr(asked, "topic_id", None) is not None


def _reply(
    context: Context, request: Any, answers: list[dict[str, Any]], code: Code = Code.NONE
) -> Any:
    broker = context.broker
    wants_operations = getattr(request, "include_cluster_authorized_operations", False)
    return context.reply(
        error_code=code,
        brokers=[broker.endpoint],
        cluster_id=broker.cluster_id,
        controller_id=broker.config.node_id,
        topics=answers,
        cluster_authorized_operations=CLUSTER_OPERATIONS if wants_operations else _NOT_ASKED_FOR,
    )


def _answers(request: Any, context: Context) -> list[dict[str, Any]]:
    """One for each topic that is named, however often. A request that has ids is one for ids."""
    given = (getattr(asked, "topic_id", None) for asked in request.topics)
    ids = dict.fromkeys(topic_id for topic_id in given if topic_id is not None)
    if ids:
        return [_answer_by_id(topic_id, request, context) for topic_id in ids]
    topics = context.broker.topics
    before = len(topics)
    return [
        _answer(name, request, context, may_create=len(topics) < before + _CREATED_MAX)
        for name in dict.fromkeys(asked.name for asked in request.topics)
    ]


def _answer_by_id(topic_id: UUID, request: Any, context: Context) -> dict[str, Any]:
    topic = context.broker.topics.by_id(topic_id)
    if topic is None:
        return _failed(None, topic_id, Code.UNKNOWN_TOPIC_ID)
    return _described(topic, request, context)


def _answer(
    name: str | None, request: Any, context: Context, *, may_create: bool
) -> dict[str, Any]:
    if name is None:
        raise Refused(Code.INVALID_REQUEST, "a topic without a name and an id")
    topics = context.broker.topics
    try:
        topic = topics.get(name) or _created(name, request, context, may_create)
    except Refused as refused:
        failed = _failed(name, None, refused.code)
        return failed | {"topic_authorized_operations": _operations(request)}
    return _described(topic, request, context)


def _created(name: str, request: Any, context: Context, may_create: bool) -> Topic:
    """Make the topic if that is allowed; Refused. `may_create`: not too many were made before."""
    config = context.broker.config
    check_name(name)
    allowed = getattr(request, "allow_auto_topic_creation", True)
    if not (allowed and config.auto_create_topics_enable) or name in UNMADE:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, name)
    if not may_create:
        raise Refused(Code.LEADER_NOT_AVAILABLE, name)
    try:
        return context.broker.topics.create(name, config.num_partitions)
    except Refused as refused:
        # Kafka has a topic made behind the request's back, and never says why it wasn't.
        log.warning("topic %s was not made: %s", name, refused)
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, name) from refused


def _described(topic: Topic, request: Any, context: Context) -> dict[str, Any]:
    own = (context.broker.config.node_id,)
    return {
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": [
            {
                "partition_index": index,
                "leader_id": own[0],
                "leader_epoch": 0,
                "replica_nodes": own,
                "isr_nodes": own,
            }
            for index in range(len(topic.partitions))
        ],
        "topic_authorized_operations": _operations(request),
    }


def _operations(request: Any) -> int:
    """Also of a topic that doesn't exist: somebody may make it."""
    wanted = getattr(request, "include_topic_authorized_operations", False)
    return TOPIC_OPERATIONS if wanted else _NOT_ASKED_FOR


def _failed(name: str | None, topic_id: Any, code: Code) -> dict[str, Any]:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": (),
    }
