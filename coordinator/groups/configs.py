"""Define and check the configurations of a group: Kafka's names, defaults and limits.

Kept by `dynamic_config`, by group id, whether there is such a group or not. Behind each stands a
setting of the broker, and most may only be within two other settings of the broker. Of share
groups the broker has no such settings, as it has no such groups: Kafka's defaults of them hold.
Source: org.apache.kafka.coordinator.group.GroupConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordinator.config import BROKER_SETTINGS, BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.settings import (
    INT32_MAX,
    INT64_MAX,
    ConfigType,
    Setting,
    split_list,
    validate_value,
)

_RESET = "share.auto.offset.reset"
_RESETS = re.compile(
    r"earliest|latest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
)


@dataclass(frozen=True, slots=True)
class BrokerLimit:
    """Limits a numeric group configuration by a broker setting, or by that setting's default."""

    default: int
    setting: str

    def resolve_limit(self, broker_config: BrokerConfig) -> int:
        """Return the limit: the broker's setting if it has one, else Kafka's default."""
        value: int = getattr(broker_config, self.setting.replace(".", "_"), self.default)
        return value


@dataclass(frozen=True, slots=True)
class GroupConfigDefinition(Setting):
    """Defines one group configuration, the broker's setting behind it, and the broker's limits.

    `is_internal`: it is described only for a group that has it.
    """

    from_broker: str = ""
    broker_min: BrokerLimit | None = None
    broker_max: BrokerLimit | None = None
    is_internal: bool = False


def _define_text_config(name: str, default: str, *choices: str) -> GroupConfigDefinition:
    return GroupConfigDefinition(ConfigType.STRING, default, choices=choices, from_broker=name)


def _define_number_config(
    name: str,
    default: int,
    min_value: int,
    broker_min_default: int | None,
    broker_max_default: int | None,
) -> GroupConfigDefinition:
    """Define a numeric group configuration of at least `min_value`.

    The broker's settings are `group.<kind>.<rest of the name>`, and `.min.` or `.max.` between the
    two for its limits.
    """
    kind, _, rest = name.partition(".")
    rest = rest.removeprefix("num.")
    return GroupConfigDefinition(
        ConfigType.INT,
        str(default),
        min_value,
        INT32_MAX,
        from_broker=f"group.{name}",
        broker_min=None
        if broker_min_default is None
        else BrokerLimit(broker_min_default, f"group.{kind}.min.{rest}"),
        broker_max=None
        if broker_max_default is None
        else BrokerLimit(broker_max_default, f"group.{kind}.max.{rest}"),
    )


_INTERVALS = {
    f"{kind}.{name}": _define_number_config(f"{kind}.{name}", *limits)
    for kind in ("consumer", "share", "streams")
    for name, *limits in (
        ("session.timeout.ms", 45_000, 1, 45_000, 60_000),
        ("heartbeat.interval.ms", 5_000, 1, 5_000, 15_000),
        ("assignment.interval.ms", 1_000, 0, 0, 15_000),
    )
}
_NUMBERS = {
    name: _define_number_config(name, *limits)
    for name, *limits in (
        ("share.delivery.count.limit", 5, 2, 2, 10),
        ("share.partition.max.record.locks", 2_000, 100, 100, 4_000),
        ("share.record.lock.duration.ms", 30_000, 1_000, 15_000, 60_000),
        ("streams.initial.rebalance.delay.ms", 3_000, 0, None, None),
        ("streams.num.standby.replicas", 0, 0, None, 2),
    )
}
_INTERNAL: dict[str, GroupConfigDefinition] = {
    name: replace(definition, is_internal=True)
    for name, definition in (
        *(
            (
                f"{kind}.assignor.offload.enable",
                GroupConfigDefinition(
                    ConfigType.BOOLEAN, "true", from_broker=f"group.{kind}.assignor.offload.enable"
                ),
            )
            for kind in ("consumer", "share", "streams")
        ),
        (
            "streams.acceptable.recovery.lag",
            GroupConfigDefinition(
                ConfigType.LONG,
                "10000",
                0,
                INT64_MAX,
                from_broker="group.streams.acceptable.recovery.lag",
            ),
        ),
        (
            "streams.num.warmup.replicas",
            _define_number_config("streams.num.warmup.replicas", 2, 0, None, 20),
        ),
        (
            "streams.task.offset.interval.ms",
            _define_number_config("streams.task.offset.interval.ms", 60_000, 1, 15_000, None),
        ),
    )
}
_ASSIGNOR, _TAGS = "streams.assignor.name", "streams.rack.aware.assignment.tags"
_ASSIGNORS = ("sticky",)
GROUP_CONFIGS: Mapping[str, GroupConfigDefinition] = {
    **_INTERVALS,
    **_NUMBERS,
    _RESET: _define_text_config(_RESET, "latest"),
    "share.isolation.level": _define_text_config(
        "share.isolation.level", "read_uncommitted", "read_committed", "read_uncommitted"
    ),
    "share.renew.acknowledge.enable": GroupConfigDefinition(
        ConfigType.BOOLEAN, "true", from_broker="share.renew.acknowledge.enable"
    ),
    "errors.deadletterqueue.copy.record.enable": GroupConfigDefinition(
        ConfigType.BOOLEAN, "false", from_broker="errors.deadletterqueue.copy.record.enable"
    ),
    "errors.deadletterqueue.topic.name": _define_text_config(
        "errors.deadletterqueue.topic.name", ""
    ),
    **_INTERNAL,
    _ASSIGNOR: GroupConfigDefinition(
        ConfigType.STRING, "sticky", from_broker="group.streams.assignors"
    ),
    _TAGS: GroupConfigDefinition(
        ConfigType.LIST, "", from_broker="group.streams.rack.aware.assignment.tags"
    ),
}


def validate_group_configs(
    configs: Mapping[str, str], broker_config: BrokerConfig
) -> dict[str, str]:
    """Return a group's configurations with their values checked and normalised.

    Raises Refused: INVALID_CONFIG, naming what is wrong.
    """
    checked_configs: dict[str, str] = {}
    for name, value in configs.items():
        config = GROUP_CONFIGS.get(name)
        if config is None:
            raise Refused(Code.INVALID_CONFIG, f"Unknown group config name: {name}")
        checked_configs[name] = validate_value(name, value, config)
        _check_text(name, checked_configs[name])
        _check_range(name, checked_configs[name], config, broker_config)
    for kind in ("consumer", "share", "streams"):
        _check_session_timeout(kind, checked_configs, broker_config)
    return checked_configs


def _check_text(name: str, value: str) -> None:
    """Raise Refused (INVALID_CONFIG) for a text that a configuration with a rule can't have."""
    if name == _RESET and not _RESETS.fullmatch(value):
        raise Refused(
            Code.INVALID_CONFIG,
            f"Invalid value {value} for configuration {name}: Invalid value `{value}` for "
            f"configuration {name}. The value must be either 'earliest', 'latest' or of the "
            "format 'by_duration:<PnDTnHnMn.nS>'.",
        )
    if name == _ASSIGNOR and value not in _ASSIGNORS:
        raise Refused(
            Code.INVALID_CONFIG,
            f"{name} '{value}' is not a registered task assignor. Registered assignors are: "
            f"[{', '.join(_ASSIGNORS)}].",
        )
    if name == _TAGS and len(set(split_list(value))) < len(split_list(value)):
        raise Refused(Code.INVALID_CONFIG, f"{name} must not contain duplicate tag keys.")


def group_config_default(name: str, broker_config: BrokerConfig) -> str:
    """Return the value of a configuration that isn't set for the group.

    That is the broker's setting if it has such a setting, else Kafka's default.
    """
    config = GROUP_CONFIGS[name]
    field = config.from_broker.replace(".", "_")
    return broker_config.format_setting(field) if field in BROKER_SETTINGS else config.default


def _check_session_timeout(
    kind: str, configs: Mapping[str, str], broker_config: BrokerConfig
) -> None:
    """Raise Refused unless the session timeout is longer than the heartbeat interval.

    Raises Refused: INVALID_CONFIG.
    """
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    session_ms, heartbeat_ms = (
        int(configs[name] if name in configs else group_config_default(name, broker_config))
        for name in (session, heartbeat)
    )
    if session_ms <= heartbeat_ms:
        raise Refused(Code.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def check_broker_limits(
    name: str, value: str, config: GroupConfigDefinition, broker_config: BrokerConfig
) -> None:
    """Raise Refused if a broker's setting, a group's default, is outside what its others allow.

    Raises Refused: INVALID_CONFIG.
    """
    if config.broker_min and int(value) < config.broker_min.resolve_limit(broker_config):
        raise Refused(
            Code.INVALID_CONFIG,
            f"{name} must be greater than or equal to {config.broker_min.setting}",
        )
    if config.broker_max and int(value) > config.broker_max.resolve_limit(broker_config):
        raise Refused(
            Code.INVALID_CONFIG, f"{name} must be less than or equal to {config.broker_max.setting}"
        )


def _check_range(
    name: str, value: str, config: GroupConfigDefinition, broker_config: BrokerConfig
) -> None:
    """Raise Refused if a group's number is outside what the broker's settings allow.

    Raises Refused: INVALID_CONFIG, which names the numbers.
    """
    low, high = (
        None if limit is None else limit.resolve_limit(broker_config)
        for limit in (config.broker_min, config.broker_max)
    )
    if low is not None and high is not None:
        if not low <= int(value) <= high:
            raise Refused(
                Code.INVALID_CONFIG, f"{name} must be in the range {low} to {high} inclusive."
            )
    elif high is not None and int(value) > high:
        raise Refused(Code.INVALID_CONFIG, f"{name} must be less than or equal to {high}")
    elif low is not None and int(value) < low:
        raise Refused(Code.INVALID_CONFIG, f"{name} must be greater than or equal to {low}")
