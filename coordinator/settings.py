"""Define settings of brokers, topics and groups, and validate their values.

The messages are worded as Kafka's, because people search for them and Kafka's tools print them.
Source of the rules: org.apache.kafka.common.config.ConfigDef.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from coordinator.errors import Code, Refused

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


class ConfigType(IntEnum):
    """Enumerates the types of settings, with the numbers that DescribeConfigs has for them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Setting:
    """Defines a setting: its type, its default as text, and its limits or the words allowed."""

    kind: ConfigType
    default: str
    low: float = 0
    high: float = INT64_MAX
    choices: tuple[str, ...] = ()
    is_replica_list: bool = False  # a list of replicas, or `*`
    extra_value: float | None = None  # a number that is allowed beside those within the limits


def validate_value(name: str, text: str, setting: Setting) -> str:
    """Return a setting's text without surrounding blanks, after checking it.

    Raises: Refused(INVALID_CONFIG) for a text that the setting can't have.
    """
    text = text.strip()
    match setting.kind:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise _create_invalid_value_error(
                    text, name, "Expected value to be either true or false"
                )
        case ConfigType.INT | ConfigType.LONG | ConfigType.DOUBLE:
            _check_limits(name, text, setting)
        case ConfigType.LIST if setting.is_replica_list:
            _check_replicas(name, text)
        case ConfigType.LIST:
            for item in split_list(text):
                if not item:
                    message = f"Configuration '{name}' values must not be empty."
                    raise Refused(Code.INVALID_CONFIG, message)
                _check_choice(name, item, setting)
        case ConfigType.STRING:
            _check_choice(name, text, setting)
    return text


def split_list(text: str) -> list[str]:
    """Split a comma-separated list into its items, without the blanks around them."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def _check_limits(name: str, text: str, setting: Setting) -> None:
    number = _parse_number(text, setting.kind)
    if number is None:
        raise _create_invalid_value_error(text, name, f"Not a number of type {setting.kind.name}")
    if setting.extra_value is not None:
        if number != setting.extra_value and not setting.low <= number <= setting.high:
            within = f"between {setting.low} and {setting.high} or equal to {setting.extra_value}"
            raise _create_invalid_value_error(text, name, f"Value must be {within}")
        return
    if number < setting.low:
        raise _create_invalid_value_error(
            str(number), name, f"Value must be at least {setting.low}"
        )
    if number > setting.high:
        raise _create_invalid_value_error(
            str(number), name, f"Value must be no more than {setting.high}"
        )


def _parse_number(text: str, kind: ConfigType) -> float | None:
    if kind is ConfigType.DOUBLE:
        return float(text) if _NUMBER.fullmatch(text) else None
    if not _WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    most = INT32_MAX if kind is ConfigType.INT else INT64_MAX
    return number if -most - 1 <= number <= most else None


def _check_choice(name: str, text: str, setting: Setting) -> None:
    if setting.choices and text not in setting.choices:
        raise _create_invalid_value_error(
            text, name, f"String must be one of: {', '.join(setting.choices)}"
        )


def _check_replicas(name: str, text: str) -> None:
    replicas = split_list(text)
    if replicas != ["*"] and not all(_REPLICA.fullmatch(replica) for replica in replicas):
        form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        raise _create_invalid_value_error(
            f"[{', '.join(replicas)}]",
            name,
            f"{name} must be the literal '*' or a list of replicas in the following format: {form}",
        )


def _create_invalid_value_error(value: str, name: str, why: str) -> Refused:
    return Refused(Code.INVALID_CONFIG, f"Invalid value {value} for configuration {name}: {why}")
