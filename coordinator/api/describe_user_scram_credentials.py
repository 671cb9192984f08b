"""Handles DescribeUserScramCredentials, which finds no credentials (KIP-554).

Behaviour: without a list of users no results; RESOURCE_NOT_FOUND for each user that is named,
DUPLICATE_RESOURCE for one that is named twice.
Versions: 0.
Simplifications: see AlterUserScramCredentials.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from coordinator.api.context import RequestContext
from coordinator.errors import Code

API_KEY = 50
VERSIONS = range(1)


def handle_request(request: Any, context: RequestContext) -> Any:
    times_named = Counter(user.name for user in request.users or ())
    results = []
    for name, times in times_named.items():
        code = Code.RESOURCE_NOT_FOUND
        message = "Attempt to describe a user credential that does not exist"
        if times > 1:
            code = Code.DUPLICATE_RESOURCE
            message = (
                "Cannot describe SCRAM credentials for the same user twice in a single request"
            )
        results.append(
            {
                "user": name,
                "error_code": code,
                "error_message": f"{message}: {name}",
                "credential_infos": (),
            }
        )
    return context.build_response(error_message="", results=results)


def build_error_response(request: Any, context: RequestContext, code: Code) -> Any:
    return context.build_response(error_code=code, error_message=None, results=())
