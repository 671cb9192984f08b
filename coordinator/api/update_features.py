"""Handle UpdateFeatures, which finalises other levels of features (KIP-584).

Behaviour: all updates of a request are done or none: the first that can't be done is reported at
the top, with INVALID_UPDATE_VERSION. A lower level must be requested as a downgrade. The new levels
are on disk, with their epoch, and in force when the answer is sent. `validate_only` changes
nothing.
Versions: 0 can't lower a level, whatever its flag says, as with Kafka since KRaft; 1 kinds of
upgrade and validation (KIP-778), 2 no result for each feature.
Simplifications: there are the features of `coordinator.features`; `metadata.version` stays where it
is, as it does with Kafka for its newest levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.api.context import RequestContext
from coordinator.errors import Code, Refused
from coordinator.features import METADATA_VERSION, SUPPORTED_LEVELS

if TYPE_CHECKING:
    from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
    from kio.schema.update_features.v2.response import UpdateFeaturesResponse

API_KEY = 57
VERSIONS = range(3)

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3

_STAYS = {
    _SAFE_DOWNGRADE: (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    ),
    _UNSAFE_DOWNGRADE: "Unsafe metadata downgrade is not supported in this version.",
}


def handle_request(
    request: UpdateFeaturesRequest, context: RequestContext[UpdateFeaturesResponse]
) -> UpdateFeaturesResponse:
    try:
        levels = {}
        for update in request.feature_updates:
            _check_update(update, context)
            levels[update.feature] = update.max_version_level
        if levels and not getattr(request, "validate_only", False):
            services = context.services
            services.dynamic_configs.finalise_features(services.features, levels)
    except Refused as refused:
        return _refuse_with_message(context, refused)
    results = [
        {"feature": update.feature, "error_code": Code.NONE, "error_message": Code.NONE.name}
        for update in request.feature_updates
    ]
    return context.build_response(error_message=None, results=results)


def build_error_response(
    request: UpdateFeaturesRequest, context: RequestContext[UpdateFeaturesResponse], code: Code
) -> UpdateFeaturesResponse:
    return _refuse_with_message(context, Refused(code))


def _refuse_with_message(
    context: RequestContext[UpdateFeaturesResponse], refusal: Refused
) -> UpdateFeaturesResponse:
    message = refusal.message or None
    return context.build_response(error_code=refusal.code, error_message=message, results=())


def _check_update(update: FeatureUpdateKey, context: RequestContext) -> None:
    """Raise Refused(INVALID_UPDATE_VERSION) for a level that a feature can't be set to.

    Source: FeatureControlManager.
    """
    name, level = update.feature, update.max_version_level
    now = context.services.features.finalised_levels.get(name, 0)
    kind = getattr(update, "upgrade_type", _UPGRADE)
    fault = f"Invalid update version {level} for feature {name}. "
    if kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        fault += "The controller does not support the given upgrade type."
    elif level < 0:
        fault += "A feature version cannot be less than 0."
    elif name not in SUPPORTED_LEVELS:
        node = f"Local controller {context.services.config.node_id}"
        unknown = (
            f"Feature {name} not found." if level == 0 else f"{node} does not support this feature."
        )
        fault += unknown
    elif not SUPPORTED_LEVELS[name][0] <= level <= SUPPORTED_LEVELS[name][1]:
        first, last = SUPPORTED_LEVELS[name]
        node = f"Local controller {context.services.config.node_id}"
        fault += f"{node} only supports versions {first}-{last}"
    elif level < now and kind == _UPGRADE:
        fault += (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > now and kind != _UPGRADE:
        fault += "Can't downgrade to a newer version."
    elif level < now and name == METADATA_VERSION:
        fault = f"Unsupported metadata.version downgrade from {now} to {level}. {_STAYS[kind]}"
    else:
        return
    raise Refused(
        Code.INVALID_UPDATE_VERSION,
        f"The update failed for all features since the following feature had an error: {fault}",
    )
