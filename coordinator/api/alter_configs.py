"""Handles AlterConfigs, which replaces the whole configuration of resources.

Behaviour: what isn't in the request is no longer set. Each resource is answered for itself: topics,
this broker, all brokers, groups. `validate_only` checks and changes nothing.
Versions: 2 flexible. Kafka advises IncrementalAlterConfigs (KIP-339).
Simplifications: see `config_alteration`.
"""

from __future__ import annotations

from typing import Any

from coordinator.api.altering import alterable, answer, answers, null_refused
from coordinator.api.context import Context
from coordinator.errors import Code, Refused

API_KEY = 33
VERSIONS = range(3)


def handle(request: Any, context: Context) -> Any:
    def replace_resource_configs(resource: Any) -> None:
        nulls = [config.name for config in resource.configs if config.value is None]
        if nulls:
            raise null_refused(nulls)
        alterable_resource = alterable(resource.resource_type, resource.resource_name, context)
        configs = alterable_resource.check(
            {config.name: config.value for config in resource.configs}
        )
        if not request.validate_only:
            alterable_resource.put(configs)

    return context.reply(responses=answers(request.resources, replace_resource_configs))


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every resource."""
    return context.reply(responses=[answer(each, Refused(code)) for each in request.resources])
