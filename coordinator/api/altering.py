"""What AlterConfigs and IncrementalAlterConfigs have in common: the resources that can be altered.

Both make a new configuration for a resource, have it checked as a whole, and put it in the place of
the old one; it is on disk and in force when that returns. The metrics of clients can't be altered:
telemetry isn't served, and a subscription would be kept for nothing.
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
    """One resource's own configuration."""

    @property
    def configs(self) -> Configs:
        """What is set now."""
        ...

    def kind(self, key: str) -> Kind | None:
        """The type of a setting; None for one that there isn't."""
        ...

    def default(self, key: str) -> str:
        """What holds if the setting is not set here."""
        ...

    def check(self, configs: Configs) -> Configs:
        """The same, as it is to be kept. Refused if it can't be."""
        ...

    def put(self, configs: Configs) -> None:
        """In place of what is set now. Refused(KAFKA_STORAGE_ERROR)."""
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
    """This broker, or without a name all brokers."""

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
            found = {
                key: checked(key, value, SETTINGS[key.replace(".", "_")])
                for key, value in configs.items()
            }
            for config in GROUP_CONFIGS.values():  # the limits of a group's are the broker's, too
                if config.from_broker in found:
                    key = config.from_broker
                    check_limits(key, found[key], config, self._context.broker.config)
            return found
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
    """The resource. Refused if it can't be altered, or isn't there."""
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
    """Refused(INVALID_REQUEST) if the name is not this broker's."""
    own = context.broker.config.node_id
    if not name.removeprefix("-").isdecimal():
        raise Refused(Code.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != own:
        raise Refused(Code.INVALID_REQUEST, unexpected.format(own, name))


def answers(resources: Any, alter: Callable[[Any], None]) -> list[dict[str, Any]]:
    """What became of each resource. One that stands in the request twice is refused twice."""
    times_named = Counter((each.resource_type, each.resource_name) for each in resources)
    found = []
    for each in resources:
        try:
            if times_named[each.resource_type, each.resource_name] > 1:
                raise Refused(Code.INVALID_REQUEST, "Each resource must appear at most once.")
            if len({config.name for config in each.configs}) < len(each.configs):
                raise Refused(Code.INVALID_REQUEST, "Error due to duplicate config keys")
            alter(each)
            found.append(answer(each, Refused(Code.NONE)))
        except Refused as refused:
            found.append(answer(each, refused))
    return found


def answer(resource: Any, refused: Refused) -> dict[str, Any]:
    return {
        "error_code": refused.code,
        "error_message": refused.message or None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def null_refused(names: list[str]) -> Refused:
    return Refused(Code.INVALID_REQUEST, f"Null value not supported for : {', '.join(names)}")
