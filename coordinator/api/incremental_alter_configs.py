"""Handles IncrementalAlterConfigs, which alters single settings of resources (KIP-339).

Behaviour: SET and DELETE a setting; APPEND items to a list, those that it has not yet, and SUBTRACT
items from one. A list that isn't set starts from its effective value. The operations on a resource
are all done or none, and each resource has a result of its own: topics, this broker, all brokers,
groups, and loggers, which can only be SET and DELETEd. `validate_only` changes nothing.
Versions: 1 flexible.
Simplifications: see `config_alteration`. Kafka accepts broker settings that it doesn't know; here
they are refused, and so is an unknown operation, which Kafka answers with UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from coordinator.api.altering import (
    Alterable,
    Configs,
    alterable,
    answer,
    answers,
    check_node_id,
    null_refused,
)
from coordinator.api.context import Context
from coordinator.api.loggers import check_level, set_level
from coordinator.dynamic import ResourceType
from coordinator.errors import Code, Refused
from coordinator.settings import Kind, items

API_KEY = 44
VERSIONS = range(2)


class Operation(IntEnum):
    """Enumerates the operations on a setting.

    Source: org.apache.kafka.clients.admin.AlterConfigOp.
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(request: Any, context: Context) -> Any:
    def alter_resource(resource: Any) -> None:
        _check_operations(resource)
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            _alter_levels(resource, context, validate_only=request.validate_only)
            return
        alterable_resource = alterable(resource.resource_type, resource.resource_name, context)
        configs = alterable_resource.check(_altered(alterable_resource, resource.configs))
        if not request.validate_only:
            alterable_resource.put(configs)

    return context.reply(responses=answers(request.resources, alter_resource))


def refuse(request: Any, context: Context, code: Code) -> Any:
    """Return a response with `code` for every resource."""
    return context.reply(responses=[answer(each, Refused(code)) for each in request.resources])


def _check_operations(resource: Any) -> None:
    nulls = []
    for config in resource.configs:
        if config.config_operation not in set(Operation):
            message = f"Unknown operation {config.config_operation} for {config.name}"
            raise Refused(Code.INVALID_REQUEST, message)
        if config.value is None and config.config_operation != Operation.DELETE:
            nulls.append(config.name)
    if nulls:
        raise null_refused(nulls)


def _altered(resource: Alterable, operations: Any) -> Configs:
    """Return the resource's configuration as the operations change it."""
    configs = dict(resource.configs)
    for each in operations:
        match each.config_operation:
            case Operation.SET:
                configs[each.name] = each.value
            case Operation.DELETE:
                configs.pop(each.name, None)
            case operation:
                if resource.kind(each.name) is not Kind.LIST:
                    name = Operation(operation).name
                    raise Refused(
                        Code.INVALID_CONFIG,
                        f"Can't {name} to key {each.name} because its type is not LIST.",
                    )
                present = items(configs.get(each.name, resource.default(each.name)))
                configs[each.name] = ",".join(_changed(present, items(each.value), operation))
    return configs


def _changed(present: list[str], given: list[str], operation: int) -> list[str]:
    if operation == Operation.APPEND:
        return [*present, *(item for item in given if item not in present)]
    return [item for item in present if item not in given]


def _alter_levels(resource: Any, context: Context, *, validate_only: bool) -> None:
    unexpected = "Unexpected node id. Expected {}, but received {}"
    check_node_id(resource.resource_name, context, unexpected)
    levels = {}
    for each in resource.configs:
        if each.config_operation not in (Operation.SET, Operation.DELETE):
            name = Operation(each.config_operation).name
            message = f"{name} operation is not allowed for the BROKER_LOGGER resource"
            raise Refused(Code.INVALID_REQUEST, message)
        level = each.value if each.config_operation == Operation.SET else None
        check_level(each.name, level)
        levels[each.name] = level
    if not validate_only:
        for name, level in levels.items():
            set_level(name, level)
