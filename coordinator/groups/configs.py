"""Define and check the configurations of a group: Kafka's names, defaults and limits.

Kept by `dynamic`, by group id, whether there is such a group or not. Behind each stands a setting
of the broker, and most may only be within two other settings of the broker. Of share and streams
groups the broker has no such settings, as it has no such groups: Kafka's defaults of them hold.
Source: org.apache.kafka.coordinator.group.GroupConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.config import SETTINGS, BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.settings import INT32_MAX, Kind, Setting, checked

_RESET = "share.auto.offset.reset"
_RESETS = re.compile(
    r"earliest|latest|by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
)


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds a group's number by a setting of the broker, or by Kafka's default of that setting."""

    default: int
    setting: str

    def of(self, broker: BrokerConfig) -> int:
        """Return the limit: the broker's setting if it has one, else Kafka's default."""
        value: int = getattr(broker, self.setting.replace(".", "_"), self.default)
        return value


@dataclass(frozen=True, slots=True)
class GroupConfig(Setting):
    """Defines one group configuration, the broker's setting behind it, and the broker's limits."""

    from_broker: str = ""
    least: Limit | None = None
    most: Limit | None = None


def _word(name: str, default: str, *choices: str) -> GroupConfig:
    kind = Kind.STRING if default != "true" else Kind.BOOLEAN
    return GroupConfig(kind, default, choices=choices, from_broker=name)


def _number(name: str, default: int, low: int, least: int | None, most: int | None) -> GroupConfig:
    """Define a numeric group configuration of at least `min_value`.

    The broker's settings are `group.<kind>.<rest of the name>`, and `.min.` or `.max.` between the
    two for its limits.
    """
    kind, _, rest = name.partition(".")
    rest = rest.removeprefix("num.")
    return GroupConfig(
        Kind.INT,
        str(default),
        low,
        INT32_MAX,
        from_broker=f"group.{name}",
        least=None if least is None else Limit(least, f"group.{kind}.min.{rest}"),
        most=None if most is None else Limit(most, f"group.{kind}.max.{rest}"),
    )


_INTERVALS = {
    f"{kind}.{name}": _number(f"{kind}.{name}", *limits)
    for kind in ("consumer", "share", "streams")
    for name, *limits in (
        ("session.timeout.ms", 45_000, 1, 45_000, 60_000),
        ("heartbeat.interval.ms", 5_000, 1, 5_000, 15_000),
        ("assignment.interval.ms", 1_000, 0, 0, 15_000),
    )
}
_NUMBERS = {
    name: _number(name, *limits)
    for name, *limits in (
        ("share.delivery.count.limit", 5, 2, 2, 10),
        ("share.partition.max.record.locks", 2_000, 100, 100, 4_000),
        ("share.record.lock.duration.ms", 30_000, 1_000, 15_000, 60_000),
        ("streams.initial.rebalance.delay.ms", 3_000, 0, None, None),
        ("streams.num.standby.replicas", 0, 0, None, 2),
    )
}
GROUP_CONFIGS: Mapping[str, GroupConfig] = {
    **_INTERVALS,
    **_NUMBERS,
    _RESET: _word(_RESET, "latest"),
    "share.isolation.level": _word(
        "share.isolation.level", "read_uncommitted", "read_committed", "read_uncommitted"
    ),
    "share.renew.acknowledge.enable": _word("share.renew.acknowledge.enable", "true"),
}


def check_group_configs(configs: Mapping[str, str], broker: BrokerConfig) -> dict[str, str]:
    """Return a group's configurations with their values checked and normalised.

    Raises Refused: INVALID_CONFIG, naming what is wrong.
    """
    checked_configs: dict[str, str] = {}
    for name, value in configs.items():
        config = GROUP_CONFIGS.get(name)
        if config is None:
            raise Refused(Code.INVALID_CONFIG, f"Unknown group config name: {name}")
        checked_configs[name] = checked(name, value, config)
        if name == _RESET and not _RESETS.fullmatch(checked_configs[name]):
            raise Refused(
                Code.INVALID_CONFIG,
                f"Invalid value {value} for configuration {name}: Invalid value `{value}` for "
                f"configuration {name}. The value must be either 'earliest', 'latest' or of the "
                "format 'by_duration:<PnDTnHnMn.nS>'.",
            )
        check_limits(name, checked_configs[name], config, broker)
    for kind in ("consumer", "share", "streams"):
        _check_session(kind, checked_configs, broker)
    return checked_configs


def default_of(name: str, broker: BrokerConfig) -> str:
    """Return the value of a configuration that isn't set for the group.

    That is the broker's setting if it has such a setting, else Kafka's default.
    """
    config = GROUP_CONFIGS[name]
    field = config.from_broker.replace(".", "_")
    return broker.text_of(field) if field in SETTINGS else config.default


def _check_session(kind: str, configs: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise Refused unless the session timeout is longer than the heartbeat interval.

    Raises Refused: INVALID_CONFIG.
    """
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    session_ms, heartbeat_ms = (
        int(configs[name] if name in configs else default_of(name, broker))
        for name in (session, heartbeat)
    )
    if session_ms <= heartbeat_ms:
        raise Refused(Code.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def check_limits(name: str, value: str, config: GroupConfig, broker: BrokerConfig) -> None:
    """Raise Refused if a number is outside what the broker's settings allow.

    Raises Refused: INVALID_CONFIG.
    """
    if config.least and int(value) < config.least.of(broker):
        raise Refused(
            Code.INVALID_CONFIG,
            f"{name} must be greater than or equal to {config.least.setting}",
        )
    if config.most and int(value) > config.most.of(broker):
        raise Refused(
            Code.INVALID_CONFIG, f"{name} must be less than or equal to {config.most.setting}"
        )
