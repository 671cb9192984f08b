"""Parse the text arguments of commands: an App by module and variable, settings by name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from streams.app import App
from streams.errors import ConfigError
from streams.settings.config import CLIENT_SETTINGS, parse_client_settings


def import_app(reference: str) -> App:
    """Import the App that `module:variable` names.

    Raises ConfigError saying which part is wrong.
    """
    module_name, _, variable = reference.partition(":")
    if not module_name or not variable:
        raise ConfigError(f"{reference!r} is not module:variable, as in examples.word_count:app")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}, wanted for {reference!r}") from error
    found = getattr(module, variable, None)
    if not isinstance(found, App):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise ConfigError(f"{variable!r} in {module_name!r} is {what} and not an App")
    return found


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """Parse the NAME=VALUE pairs of `--set`; the last pair of a name wins.

    Librdkafka's settings are below `consumer` and `producer`: `consumer.fetch.min.bytes=1`, or all
    at once as JSON, `consumer={"fetch.min.bytes": 1}`. Raises ConfigError.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} is not NAME=VALUE")
        client, dot, below = name.partition(".")
        if client not in CLIENT_SETTINGS:
            settings[name] = value
        elif not dot:
            settings[name] = settings.get(name, {}) | parse_client_settings(f"--set {name}", value)
        elif below:
            settings.setdefault(client, {})[below] = value
        else:
            raise ConfigError(f"--set {pair!r} names no setting of librdkafka after the dot")
    return settings
