"""Finds, checks and replaces the configurations that clients can alter.

AlterConfigs and IncrementalAlterConfigs build a new configuration for a resource, check it as a
whole, and replace the old one with it; it is on disk and in force when that returns. Subscriptions
to metrics of clients can't be altered: telemetry isn't served, so they would have no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coordinator.api.context import Context
from coordinator.config import SETTINGS
from coordinator.dynamic import DYNAMIC, ResourceType
from coordinator.errors import Code, Refused
from coordinator.groups.configs import GROUP_CONFIGS, check_group_configs, check_limits
from coordinator.groups.configs import default_of as group_default_of
from coordinator.log.configs import TOPIC_CONFIGS, check_configs, default_of
from coordinator.log.topics import check_name
from coordinator.settings import Kind, checked

Configs = Mapping[str, str]


class Alterable(Protocol):
    """Represents a resource whose configuration can be read, checked and replaced."""

    @property
    def configs(self) -> Configs:
        """Return what is set for the resource now."""
        ...

    def kind(self, key: str) -> Kind | None:
        """Return the type of a setting; None for one that doesn't exist."""
        ...

    def default(self, key: str) -> str:
        """Return the value that is effective if the setting is not set for this resource."""
        ...

    def check(self, configs: Configs) -> Configs:
        """Return a new configuration with its values in the form that is stored.

        Raises: Refused for one that the resource can't have.
        """
        ...

    def put(self, configs: Configs) -> None:
        """Replace the configuration of the resource.

        Raises: Refused(KAFKA_STORAGE_ERROR).
        """
        ...


class _Topic:
    def __init__(self, name: str, context: Context) -> None:
        if not name:
            raise Refused(Code.INVALID_REQUEST, "Default topic resources are not allowed.")
        check_name(name)
        topic = context.broker.topics.get(name)
        self.configs: Configs = topic.configs if topic else {}
        self._name = name
        self._context = context

    def kind(self, key: str) -> Kind | None:
        return TOPIC_CONFIGS[key].kind if key in TOPIC_CONFIGS else None

    def default(self, key: str) -> str:
        return default_of(key, self._context.broker.config)

    def check(self, configs: Configs) -> Configs:
        checked_configs = check_configs(configs)
        if self._context.broker.topics.get(self._name) is None:
            message = f"The topic '{self._name}' does not exist."
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, message)
        return checked_configs

    def put(self, configs: Configs) -> None:
        self._context.broker.topics.alter(self._name, configs)


class _Broker:
    """Represents this broker's configuration, or without a name that of all brokers."""

    def __init__(self, name: str, context: Context) -> None:
        if name:
            check_node_id(name, context, "Unexpected broker id, expected {}, but received {}")
        self._name = name
        self._context = context
        self.configs = context.broker.dynamic.of(ResourceType.BROKER, name)

    def kind(self, key: str) -> Kind | None:
        field = key.replace(".", "_")
        return SETTINGS[field].kind if field in SETTINGS else None

    def default(self, key: str) -> str:
        return self._context.broker.config.text_of(key.replace(".", "_"))

    def check(self, configs: Configs) -> Configs:
        unknown = [key for key in configs if self.kind(key) is None]
        if unknown:
            message = f"Not settings of this broker: [{', '.join(unknown)}]"
            raise Refused(Code.INVALID_REQUEST, message)
        static = [key for key in configs if key.replace(".", "_") not in DYNAMIC]
        if static:
            message = f"Cannot update these configs dynamically: [{', '.join(static)}]"
            raise Refused(Code.INVALID_REQUEST, message)
        try:
            checked_configs = {
                key: checked(key, value, SETTINGS[key.replace(".", "_")])
                for key, value in configs.items()
            }
            for config in GROUP_CONFIGS.values():  # they limit the broker's values too
                if config.from_broker in checked_configs:
                    key = config.from_broker
                    check_limits(key, checked_configs[key], config, self._context.broker.config)
            return checked_configs
        except Refused as refused:
            raise Refused(Code.INVALID_REQUEST, refused.message) from refused

    def put(self, configs: Configs) -> None:
        self._context.broker.dynamic.put(ResourceType.BROKER, self._name, configs)


class _Group:
    def __init__(self, name: str, context: Context) -> None:
        if not name:
            raise Refused(Code.INVALID_REQUEST, "Default group resources are not allowed.")
        self._name = name
        self._broker = context.broker.config
        self._dynamic = context.broker.dynamic
        self.configs = self._dynamic.of(ResourceType.GROUP, name)

    def kind(self, key: str) -> Kind | None:
        return GROUP_CONFIGS[key].kind if key in GROUP_CONFIGS else None

    def default(self, key: str) -> str:
        return group_default_of(key, self._broker)

    def check(self, configs: Configs) -> Configs:
        return check_group_configs(configs, self._broker)

    def put(self, configs: Configs) -> None:
        self._dynamic.put(ResourceType.GROUP, self._name, configs)


def alterable(kind: int, name: str, context: Context) -> Alterable:
    """Return the resource of a type and name.

    Raises: Refused if it can't be altered, or doesn't exist.
    """
    match kind:
        case ResourceType.TOPIC:
            return _Topic(name, context)
        case ResourceType.BROKER:
            return _Broker(name, context)
        case ResourceType.GROUP:
            return _Group(name, context)
        case ResourceType.CLIENT_METRICS:
            message = "This broker takes no metrics from clients: nothing would be collected."
            raise Refused(Code.INVALID_REQUEST, message)
    raise Refused(Code.INVALID_REQUEST, f"Unknown resource type {kind}")


def check_node_id(name: str, context: Context, unexpected: str) -> None:
    """Raise Refused(INVALID_REQUEST) if the name is not this broker's node id."""
    own = context.broker.config.node_id
    if not name.removeprefix("-").isdecimal():
        raise Refused(Code.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != own:
        raise Refused(Code.INVALID_REQUEST, unexpected.format(own, name))


def answers(resources: Any, alter: Callable[[Any], None]) -> list[dict[str, Any]]:
    """Call `alter` for each resource and return a result for each.

    A resource that the request names twice is refused, in both places.
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
            results.append(answer(each, Refused(Code.NONE)))
        except Refused as refused:
            results.append(answer(each, refused))
    return results


def answer(resource: Any, refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message or None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def null_refused(names: list[str]) -> Refused:
    return Refused(Code.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")
