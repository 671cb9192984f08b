"""Handle Metadata, which returns the broker and topics, all led by this broker.

Behaviour: no list of topics means all of them (in version 0 an empty one). A topic that doesn't
exist is created with the broker's defaults if the request and `auto.create.topics.enable` allow it,
and is part of the same response; otherwise UNKNOWN_TOPIC_OR_PARTITION. A name that no topic can
have gets INVALID_TOPIC_EXCEPTION, an unknown id UNKNOWN_TOPIC_ID and no name, as in Kafka (Java's
consumer of a regular expression fails on that: see `docs/broker.md`). One request creates at most
100 topics; the others get LEADER_NOT_AVAILABLE, after which clients ask again.
Versions: 1 null for all, 4 auto-creation on request (KIP-204), 7 leader epochs, 8 authorised
operations (KIP-430), 9 flexible, 10 topic ids (KIP-516), 12 look-up by id (before that an id is
INVALID_REQUEST for all), 13 top-level error.
Simplifications: without an authoriser every operation is allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.log.topic_names import check_topic_name
from coordinator.log.topics import HIDDEN_TOPICS, INTERNAL_TOPICS, BrokerTopic

if TYPE_CHECKING:
    from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
    from kio.schema.metadata.v13.response import MetadataResponse

log = logging.getLogger(__name__)

API_KEY = 3
VERSIONS = range(14)

# All operations that an ACL could allow, a bit each.
TOPIC_OPERATIONS = 3_576
CLUSTER_OPERATIONS = 8_096
_OPERATIONS_NOT_REQUESTED = -(2**31)
_FIRST_WITH_IDS = 12
# Limit on the topics that one request creates, so that other clients don't wait for long.
_CREATED_MAX = 100
# Topics that Metadata never creates.
NEVER_AUTO_CREATED = INTERNAL_TOPICS | HIDDEN_TOPICS


def handle_request(
    request: MetadataRequest, context: RequestContext[MetadataResponse]
) -> MetadataResponse:
    topics = context.services.topics
    if context.version < _FIRST_WITH_IDS and any(map(_names_an_id, request.topics or ())):
        raise Refused(Code.INVALID_REQUEST, f"version {context.version} takes no topic ids")
    if request.topics is None or (context.version == 0 and not request.topics):
        results = [_describe_topic(topic, request, context) for topic in topics]
    else:
        results = _describe_requested_topics(request.topics, request, context)
    return _build_response(context, request, results)


def build_error_response(
    request: MetadataRequest, context: RequestContext[MetadataResponse], code: Code
) -> MetadataResponse:
    """Return a response with `code` for every named topic, and at the top from version 13 on."""
    unnamed = "" if context.version < _FIRST_WITH_IDS else None
    results = [
        _build_failed_topic(unnamed if topic.name is None else topic.name, None, code)
        for topic in request.topics or ()
    ]
    return _build_response(context, request, results, code)


def _names_an_id(requested: MetadataRequestTopic) -> bool:
    """Return whether a requested topic is given by id, which versions 10 and 11 don't support."""
    return requested.name is None or getattr(requested, "topic_id", None) is not None


def _build_response(
    context: RequestContext[MetadataResponse],
    request: MetadataRequest,
    topics: list[dict[str, Any]],
    code: Code = Code.NONE,
) -> MetadataResponse:
    services = context.services
    wants_operations = getattr(request, "include_cluster_authorized_operations", False)
    return context.build_response(
        error_code=code,
        brokers=[services.endpoint],
        cluster_id=services.cluster_id,
        controller_id=services.config.node_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if wants_operations
        else _OPERATIONS_NOT_REQUESTED,
    )


def _describe_requested_topics(
    requested_topics: Sequence[MetadataRequestTopic],
    request: MetadataRequest,
    context: RequestContext,
) -> list[dict[str, Any]]:
    """Describe each requested topic, once however often it is named; create it if allowed.

    A request that has ids is one for ids only.
    """
    given = (getattr(requested, "topic_id", None) for requested in requested_topics)
    ids = dict.fromkeys(topic_id for topic_id in given if topic_id is not None)
    if ids:
        return [_describe_topic_by_id(topic_id, request, context) for topic_id in ids]
    topics = context.services.topics
    before = len(topics)
    return [
        _describe_or_create_topic(
            name, request, context, may_create=len(topics) < before + _CREATED_MAX
        )
        for name in dict.fromkeys(requested.name for requested in requested_topics)
    ]


def _describe_topic_by_id(
    topic_id: UUID, request: MetadataRequest, context: RequestContext
) -> dict[str, Any]:
    topic = context.services.topics.by_id(topic_id)
    if topic is None:
        return _build_failed_topic(None, topic_id, Code.UNKNOWN_TOPIC_ID)
    return _describe_topic(topic, request, context)


def _describe_or_create_topic(
    name: str | None, request: MetadataRequest, context: RequestContext, *, may_create: bool
) -> dict[str, Any]:
    if name is None:
        raise Refused(Code.INVALID_REQUEST, "a topic without a name and an id")
    topics = context.services.topics
    try:
        topic = topics.get(name) or _create_topic_if_allowed(name, request, context, may_create)
    except Refused as refused:
        failed = _build_failed_topic(name, None, refused.code)
        return failed | {"topic_authorized_operations": _select_authorized_operations(request)}
    return _describe_topic(topic, request, context)


def _create_topic_if_allowed(
    name: str, request: MetadataRequest, context: RequestContext, may_create: bool
) -> BrokerTopic:
    """Create a topic if the request and the broker allow it.

    `may_create` is false once the request has created as many as it may. Raises: Refused.
    """
    config = context.services.config
    check_topic_name(name)
    allowed = getattr(request, "allow_auto_topic_creation", True)
    if not (allowed and config.auto_create_topics_enable) or name in NEVER_AUTO_CREATED:
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, name)
    if not may_create:
        raise Refused(Code.LEADER_NOT_AVAILABLE, name)
    try:
        return context.services.topics.create_topic(name, config.num_partitions)
    except Refused as refused:
        # Kafka creates topics asynchronously, and never tells the client why one wasn't.
        log.warning("topic %s was not made: %s", name, refused)
        raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, name) from refused


def _describe_topic(
    topic: BrokerTopic, request: MetadataRequest, context: RequestContext
) -> dict[str, Any]:
    own = (context.services.config.node_id,)
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
        "topic_authorized_operations": _select_authorized_operations(request),
    }


def _select_authorized_operations(request: MetadataRequest) -> int:
    """Return the operations on a topic that are authorized, if the request wants them.

    They are returned for a topic that doesn't exist, too: the client may create it.
    """
    wanted = getattr(request, "include_topic_authorized_operations", False)
    return TOPIC_OPERATIONS if wanted else _OPERATIONS_NOT_REQUESTED


def _build_failed_topic(name: str | None, topic_id: UUID | None, code: Code) -> dict[str, Any]:
    return {
        "error_code": code,
        "name": name,
        "topic_id": topic_id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": (),
    }
