"""Handle IncrementalAlterConfigs, which alters single settings of resources (KIP-339).

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
from typing import TYPE_CHECKING, Any

from coordinator.api.config_alteration import (
    AlterableResource,
    Configs,
    alter_each_resource,
    build_resource_result,
    create_null_values_error,
    find_alterable_resource,
    require_own_node_id,
)
from coordinator.api.context import RequestContext
from coordinator.api.loggers import check_logger_level, set_logger_level
from coordinator.dynamic_config import ResourceType
from coordinator.errors import Code, Outcome, Refused
from coordinator.settings import ConfigType, split_list

if TYPE_CHECKING:
    from kio.schema.incremental_alter_configs.v1.request import (
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )
    from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

API_KEY = 44
VERSIONS = range(2)


class AlterOperation(IntEnum):
    """Enumerates the operations on a setting.

    Source: org.apache.kafka.clients.admin.AlterConfigOp.
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle_request(
    request: IncrementalAlterConfigsRequest,
    context: RequestContext[IncrementalAlterConfigsResponse],
) -> IncrementalAlterConfigsResponse:
    def alter_resource(resource: AlterConfigsResource) -> None:
        _check_operations(resource)
        resource_type: int = resource.resource_type
        if resource_type == ResourceType.BROKER_LOGGER:
            _alter_logger_levels(resource, context, validate_only=request.validate_only)
            return
        alterable_resource = find_alterable_resource(resource_type, resource.resource_name, context)
        configs = alterable_resource.validate_configs(
            _apply_operations(alterable_resource, resource.configs)
        )
        if not request.validate_only:
            alterable_resource.save_and_replace_configs(configs)

    return context.build_response(responses=alter_each_resource(request.resources, alter_resource))


def build_error_response(
    request: IncrementalAlterConfigsRequest,
    context: RequestContext[IncrementalAlterConfigsResponse],
    code: Code,
) -> IncrementalAlterConfigsResponse:
    """Return a response with `code` for every resource."""
    return context.build_response(
        responses=[build_resource_result(each, Outcome(code)) for each in request.resources]
    )


def _check_operations(resource: AlterConfigsResource) -> None:
    nulls = []
    for config in resource.configs:
        operation: int = config.config_operation
        if operation not in set(AlterOperation):
            message = f"Unknown operation {operation} for {config.name}"
            raise Refused(Code.INVALID_REQUEST, message)
        if config.value is None and operation != AlterOperation.DELETE:
            nulls.append(config.name)
    if nulls:
        raise create_null_values_error(nulls)


def _apply_operations(resource: AlterableResource, operations: Any) -> Configs:
    """Return the resource's configuration as the operations change it."""
    configs = dict(resource.configs)
    for each in operations:
        match each.config_operation:
            case AlterOperation.SET:
                configs[each.name] = each.value
            case AlterOperation.DELETE:
                configs.pop(each.name, None)
            case operation:
                if resource.find_setting_type(each.name) is not ConfigType.LIST:
                    name = AlterOperation(operation).name
                    raise Refused(
                        Code.INVALID_CONFIG,
                        f"Can't {name} to key {each.name} because its type is not LIST.",
                    )
                present = split_list(configs.get(each.name, resource.default_value(each.name)))
                configs[each.name] = ",".join(
                    _apply_to_list(present, split_list(each.value), operation)
                )
    return configs


def _apply_to_list(present: list[str], given_entries: list[str], operation: int) -> list[str]:
    if operation == AlterOperation.APPEND:
        return [*present, *(item for item in given_entries if item not in present)]
    return [item for item in present if item not in given_entries]


def _alter_logger_levels(
    resource: AlterConfigsResource, context: RequestContext, *, validate_only: bool
) -> None:
    unexpected = "Unexpected node id. Expected {}, but received {}"
    require_own_node_id(resource.resource_name, context, unexpected)
    levels = {}
    for each in resource.configs:
        operation: int = each.config_operation
        if operation not in (AlterOperation.SET, AlterOperation.DELETE):
            name = AlterOperation(operation).name
            message = f"{name} operation is not allowed for the BROKER_LOGGER resource"
            raise Refused(Code.INVALID_REQUEST, message)
        level = each.value if operation == AlterOperation.SET else None
        check_logger_level(each.name, level)
        levels[each.name] = level
    if not validate_only:
        for name, level in levels.items():
            set_logger_level(name, level)
