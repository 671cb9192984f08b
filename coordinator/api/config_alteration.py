"""Find, check and replace the configurations that clients can alter.

AlterConfigs and IncrementalAlterConfigs build a new configuration for a resource, check it as a
whole, and replace the old one with it; it is on disk and in force when that returns. Subscriptions
to metrics of clients can't be altered: telemetry isn't served, so they would have no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coordinator.api.context import RequestContext
from coordinator.config import BROKER_SETTINGS, TIME_UNIT_ALIASES
from coordinator.dynamic_config import DYNAMIC_SETTINGS, ResourceType
from coordinator.errors import SUCCESS, Code, Outcome, Refused
from coordinator.groups.configs import GROUP_CONFIGS, check_broker_limits, validate_group_configs
from coordinator.groups.configs import group_config_default as group_default_of
from coordinator.log.configs import TOPIC_CONFIGS, find_topic_config_default, validate_topic_configs
from coordinator.log.topic_names import check_topic_name
from coordinator.settings import ConfigType, validate_value
from coordinator.unused_settings import is_unused_setting

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2.request import AlterConfigsResource
    from kio.schema.incremental_alter_configs.v1.request import (
        AlterConfigsResource as IncrementalResource,
    )

Configs = Mapping[str, str]
ResourceT = TypeVar("ResourceT", bound="AlterConfigsResource | IncrementalResource")


class AlterableResource(Protocol):
    """Represents a resource whose configuration can be read, checked and replaced."""

    @property
    def configs(self) -> Configs:
        """Return the settings that the resource overrides now."""
        ...

    def find_setting_type(self, key: str) -> ConfigType | None:
        """Return the type of a setting; None for one that doesn't exist."""
        ...

    def default_value(self, key: str) -> str:
        """Return the value that is effective if the setting is not set for this resource."""
        ...

    def validate_configs(self, configs: Configs) -> Configs:
        """Check a new configuration, and return it with its values in the form that is stored.

        Raises: Refused for one that the resource can't have.
        """
        ...

    def save_and_replace_configs(self, configs: Configs) -> None:
        """Replace the configuration of the resource.

        Raises: Refused(KAFKA_STORAGE_ERROR).
        """
        ...


class _AlterableTopic:
    def __init__(self, name: str, context: RequestContext) -> None:
        if not name:
            raise Refused(Code.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_topic_name(name)
        topic = context.services.topics.get(name)
        self.configs: Configs = topic.configs if topic else {}
        self._name = name
        self._context = context

    def find_setting_type(self, key: str) -> ConfigType | None:
        return TOPIC_CONFIGS[key].kind if key in TOPIC_CONFIGS else None

    def default_value(self, key: str) -> str:
        return find_topic_config_default(key, self._context.services.config)

    def validate_configs(self, configs: Configs) -> Configs:
        checked_configs = validate_topic_configs(configs)
        if self._context.services.topics.get(self._name) is None:
            message = f"The topic '{self._name}' does not exist."
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
        return checked_configs

    def save_and_replace_configs(self, configs: Configs) -> None:
        self._context.services.topics.save_and_replace_configs(self._name, configs)


class _AlterableBroker:
    """Represents this broker's configuration, or without a name that of all brokers."""

    def __init__(self, name: str, context: RequestContext) -> None:
        if name:
            require_own_node_id(name, context, "Unexpected broker id, expected {}, but received {}")
        self._name = name
        self._context = context
        self.configs = context.services.dynamic_configs.configs_of_resource(
            ResourceType.BROKER, name
        )

    def find_setting_type(self, key: str) -> ConfigType | None:
        field = key.replace(".", "_")
        return BROKER_SETTINGS[field].kind if field in BROKER_SETTINGS else None

    def default_value(self, key: str) -> str:
        return self._context.services.config.format_setting(key.replace(".", "_"))

    def validate_configs(self, configs: Configs) -> Configs:
        unknown = [key for key in configs if not _is_broker_setting(key)]
        if unknown:
            message = f"Not settings of this broker: [{', '.join(unknown)}]"
            raise Refused(Code.INVALID_REQUEST, message)
        static = [key for key in configs if key.replace(".", "_") not in DYNAMIC_SETTINGS]
        if static:
            message = f"Cannot update these configs dynamically: [{', '.join(static)}]"
            raise Refused(Code.INVALID_REQUEST, message)
        try:
            checked_configs = {
                key: validate_value(key, value, BROKER_SETTINGS[key.replace(".", "_")])
                for key, value in configs.items()
            }
            for config in GROUP_CONFIGS.values():  # they limit the broker's values too
                if config.from_broker in checked_configs:
                    key = config.from_broker
                    check_broker_limits(
                        key, checked_configs[key], config, self._context.services.config
                    )
            return checked_configs
        except Refused as refused:
            raise Refused(Code.INVALID_REQUEST, refused.message) from refused

    def save_and_replace_configs(self, configs: Configs) -> None:
        self._context.services.dynamic_configs.save_and_replace_configs(
            ResourceType.BROKER, self._name, configs
        )


def _is_broker_setting(key: str) -> bool:
    """Return whether a name is that of a broker's setting, if only of Kafka's, without effect."""
    return (
        key.replace(".", "_") in BROKER_SETTINGS
        or key in TIME_UNIT_ALIASES
        or is_unused_setting(key)
    )


class _AlterableGroup:
    def __init__(self, name: str, context: RequestContext) -> None:
        if not name:
            raise Refused(Code.INVALID_REQUEST, "Default group resources are not allowed.")
        self._name = name
        self._broker = context.services.config
        self._dynamic = context.services.dynamic_configs
        self.configs = self._dynamic.configs_of_resource(ResourceType.GROUP, name)

    def find_setting_type(self, key: str) -> ConfigType | None:
        return GROUP_CONFIGS[key].kind if key in GROUP_CONFIGS else None

    def default_value(self, key: str) -> str:
        return group_default_of(key, self._broker)

    def validate_configs(self, configs: Configs) -> Configs:
        return validate_group_configs(configs, self._broker)

    def save_and_replace_configs(self, configs: Configs) -> None:
        self._dynamic.save_and_replace_configs(ResourceType.GROUP, self._name, configs)


def find_alterable_resource(kind: int, name: str, context: RequestContext) -> AlterableResource:
    """Return the resource of a type and name.

    Raises: Refused if it can't be altered, or doesn't exist.
    """
    match kind:
        case ResourceType.TOPIC:
            return _AlterableTopic(name, context)
        case ResourceType.BROKER:
            return _AlterableBroker(name, context)
        case ResourceType.GROUP:
            return _AlterableGroup(name, context)
        case ResourceType.CLIENT_METRICS:
            message = "This broker takes no metrics from clients: nothing would be collected."
            raise Refused(Code.INVALID_REQUEST, message)
    raise Refused(Code.INVALID_REQUEST, f"Unknown resource type {kind}")


def require_own_node_id(name: str, context: RequestContext, message_format: str) -> None:
    """Raise Refused(INVALID_REQUEST) if the name is not this broker's node id."""
    own = context.services.config.node_id
    if not name.removeprefix("-").isdecimal():
        raise Refused(Code.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != own:
        raise Refused(Code.INVALID_REQUEST, message_format.format(own, name))


def alter_each_resource(
    resources: Sequence[ResourceT], alter: Callable[[ResourceT], None]
) -> list[dict[str, Any]]:
    """Call `alter` for each resource, but refuse duplicates; return a result for each.

    Duplicates are a resource that the request names twice, refused in both places, and a resource
    that names a configuration key twice.
    """
    times_named = Counter((each.resource_type, each.resource_name) for each in resources)
    results = []
    for each in resources:
        try:
            if times_named[each.resource_type, each.resource_name] > 1:
                raise Refused(Code.INVALID_REQUEST, "Each resource must appear at most once.")
            if len({config.name for config in each.configs}) < len(each.configs):
                raise Refused(Code.INVALID_REQUEST, "Error due to duplicate config keys")
            alter(each)
            results.append(build_resource_result(each, SUCCESS))
        except Refused as refused:
            results.append(build_resource_result(each, refused.outcome))
    return results


def build_resource_result(
    resource: AlterConfigsResource | IncrementalResource, outcome: Outcome
) -> dict[str, Any]:
    return {
        "error_code": outcome.code,
        "error_message": outcome.message or None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def create_null_values_error(names: list[str]) -> Refused:
    return Refused(Code.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")
