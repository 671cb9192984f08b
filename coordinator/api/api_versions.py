"""Handle ApiVersions, which lists the APIs and versions that this broker serves.

Behaviour: lists exactly the router's APIs, whatever the client. A client name or version that isn't
plain gets INVALID_REQUEST. A version of this request that isn't known is answered in version 0 with
UNSUPPORTED_VERSION, by the router.
Versions: 3 added the client's name and features (KIP-511, KIP-584), 4 features from version 0.
Simplifications: features are only those of `coordinator.features`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code
from coordinator.features import SUPPORTED_LEVELS

if TYPE_CHECKING:
    from kio.schema.api_versions.v4.request import ApiVersionsRequest
    from kio.schema.api_versions.v4.response import ApiVersionsResponse

API_KEY = 18
VERSIONS = range(5)

_PLAIN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def handle_request(
    request: ApiVersionsRequest, context: RequestContext[ApiVersionsResponse]
) -> ApiVersionsResponse:
    if context.version >= 3:
        named = (request.client_software_name, request.client_software_version)
        if not all(_PLAIN.fullmatch(text) for text in named):
            return build_error_response(request, context, Code.INVALID_REQUEST)
    features = context.services.features
    return context.build_response(
        api_keys=context.services.api_versions,
        supported_features=[
            {"name": name, "min_version": first, "max_version": last}
            for name, (first, last) in SUPPORTED_LEVELS.items()
            if first > 0 or context.version >= 4
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            {"name": name, "max_version_level": level, "min_version_level": level}
            for name, level in features.finalised_levels.items()
        ],
    )


def build_error_response(
    request: ApiVersionsRequest | None, context: RequestContext[ApiVersionsResponse], code: Code
) -> ApiVersionsResponse:
    """Return a response with `code`, and for UNSUPPORTED_VERSION with ApiVersions' own versions."""
    own = {"api_key": API_KEY, "min_version": VERSIONS[0], "max_version": VERSIONS[-1]}
    keys = [own] if code == Code.UNSUPPORTED_VERSION else []
    return context.build_response(error_code=code, api_keys=keys)
