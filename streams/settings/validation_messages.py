"""Put what is wrong with settings into the words of the settings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from streams.connection.settings import hides_value
from streams.settings.client_settings import CLIENT_SETTINGS
from streams.settings.kafka_streams_settings import REFUSED, RENAMED
from streams.settings.setting_origins import SettingOrigins

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


def describe_unknown_setting(
    shown_name: str,
    name: str,
    fields: Mapping[str, FieldInfo],
    *,
    spell: Callable[[str], str] = str,
) -> str:
    """Return the message for an unknown setting, with the name that is most likely meant.

    `spell` returns a setting's name as it is written where the unknown one was found.
    """
    if meant := _OTHER_LIBRARIES.get(name) or RENAMED.get(name):
        return f"unknown setting {shown_name}; here it is {spell(meant)!r}"
    if why := REFUSED.get(name):
        return f"setting {shown_name} of Kafka Streams is not there: {why}"
    close = difflib.get_close_matches(name, fields, n=1)
    hint = f"; did you mean {spell(close[0])!r}?" if close else ""
    return f"unknown setting {shown_name}{hint}"


def _describe_bounds(field: FieldInfo) -> str:
    """Describe the bounds that a setting's type declares."""
    metadata = field.metadata
    least = next(each.ge for each in metadata if hasattr(each, "ge"))
    most = next((each.le for each in metadata if hasattr(each, "le")), None)
    return f"at least {least}" if most is None else f"from {least} to {most}"


def explain_validation_error(
    error: ValidationError, fields: Mapping[str, FieldInfo], origins: SettingOrigins
) -> str:
    """Return pydantic's validation errors as one message in the words of the settings."""
    lines = []
    for problem in error.errors():
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            # A text or a dictionary may hold a secret: settings of `connection` come here when
            # the word `connection` is missing or misspelt.
            is_shown = isinstance(problem["input"], int | float) and not hides_value(name)
            shown = f"{name} = {problem['input']!r}" if is_shown else name
            line = describe_unknown_setting(shown, name, fields)
        elif problem["type"] in ("greater_than_equal", "less_than_equal"):
            line = f"{name} must be {_describe_bounds(fields[name])}, not {problem['input']}"
        elif problem["type"] == "value_error":
            message = problem["msg"].removeprefix("Value error, ")
            line = f"setting {name!r}: {message}" if name else message
        elif name in CLIENT_SETTINGS:
            line = f"setting {name!r} takes librdkafka's settings by their names"
        else:
            line = f"setting {name!r} can't be {problem['input']!r}: {problem['msg']}"
        lines.append(line + _describe_origin(str(problem["loc"][0]) if name else "", line, origins))
    return "; ".join(lines)


def _describe_origin(setting: str, message: str, origins: SettingOrigins) -> str:
    """Return the end of a message: where its setting comes from.

    A message about how several fit together has no `setting`, and is about all that it names.
    """
    if setting:
        origin = origins.describe_origin(setting)
        return f" (from {origin})" if origin else ""
    named = [
        (each, origins.describe_origin(each))
        for each in re.findall(r"\b[a-z]+(?:_[a-z]+)*\b", message)
    ]
    told = ", ".join(f"{each} from {origin}" for each, origin in dict(named).items() if origin)
    return f" ({told})" if told else ""
