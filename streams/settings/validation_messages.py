"""Put what is wrong with settings into the words of the settings."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from streams.connection.settings import hides_value
from streams.settings.client_settings import CLIENT_SETTINGS

_OTHER_LIBRARIES = {
    # Quix Streams
    "broker_address": "bootstrap_servers",
    "commit_interval": "commit_interval_ms",
    # Faust
    "broker": "bootstrap_servers",
    "broker_credentials": "connection",
    "table_standby_replicas": "num_standby_replicas",
    "datadir": "state_dir",
}
"""The settings that replace those of other libraries, by their names."""


def describe_unknown_setting(shown_name: str, name: str, fields: Mapping[str, FieldInfo]) -> str:
    """Return the message for an unknown setting, with the name that is most likely meant."""
    if meant := _OTHER_LIBRARIES.get(name):
        return f"unknown setting {shown_name}; here it is {meant!r}"
    close = difflib.get_close_matches(name, fields, n=1)
    return f"unknown setting {shown_name}" + (f"; did you mean {close[0]!r}?" if close else "")


def _describe_bounds(field: FieldInfo) -> str:
    """Describe the bounds that a setting's type declares."""
    metadata = field.metadata
    least = next(each.ge for each in metadata if hasattr(each, "ge"))
    most = next((each.le for each in metadata if hasattr(each, "le")), None)
    return f"at least {least}" if most is None else f"from {least} to {most}"


def explain_validation_error(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """Return pydantic's validation errors as one message in the words of the settings."""
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            # A text or a dictionary may hold a secret: settings of `connection` come here when
            # the word `connection` is missing or misspelt.
            is_shown = isinstance(problem["input"], int | float) and not hides_value(name)
            shown = f"{name} = {problem['input']!r}" if is_shown else name
            lines.append(describe_unknown_setting(shown, name, fields))
        elif problem["type"] in ("greater_than_equal", "less_than_equal"):
            lines.append(f"{name} must be {_describe_bounds(fields[name])}, not {problem['input']}")
        elif problem["type"] == "value_error":
            message = problem["msg"].removeprefix("Value error, ")
            lines.append(f"setting {name!r}: {message}" if name else message)
        elif name in CLIENT_SETTINGS:
            lines.append(f"setting {name!r} takes librdkafka's settings by their names")
        else:
            lines.append(f"setting {name!r} can't be {problem['input']!r}: {problem['msg']}")
    return "; ".join(lines)
