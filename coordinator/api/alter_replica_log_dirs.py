"""Handles AlterReplicaLogDirs, which finds no other directory to move to (KIP-113).

Behaviour: a partition that is asked to be in the directory in which it is, is there already. Any
other directory gets LOG_DIR_NOT_FOUND. For a partition that is named twice the last one counts.
Versions: 2 flexible.
Simplifications: there is one data directory.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 34
VERSIONS = range(1, 3)


def handle_request(request: Any, context: RequestContext) -> Any:
    own = str(context.services.config.data_dir.absolute())
    topics = context.services.topics
    codes: dict[str, dict[int, Code]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = Code.LOG_DIR_NOT_FOUND
                if directory.path == own:
                    known = topics.find_partition(topic.name, index) is not None
                    code = Code.NONE if known else Code.UNKNOWN_TOPIC_OR_PARTITION
                codes.setdefault(topic.name, {})[index] = code
    return _build_response(codes, context)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    """Return a response with `code` for every partition."""
    codes: dict[str, dict[int, Code]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            codes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, code))
    return _build_response(codes, context)


def _build_response(codes: dict[str, dict[int, Code]], context: RequestContext) -> Any:
    return context.build_response(
        results=[
            {
                "topic_name": name,
                "partitions": [
                    {"partition_index": index, "error_code": code} for index, code in each.items()
                ],
            }
            for name, each in codes.items()
        ]
    )
