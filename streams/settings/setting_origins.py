"""Find the place that a setting comes from, for messages about it."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from streams.settings.client_settings import CLIENT_SETTINGS
from streams.settings.settings_file import read_setting_names

ENVIRONMENT_PREFIX = "MILLRACE_"


def name_environment_variable(setting: str) -> str:
    """Return the name of the environment variable of a setting."""
    return f"{ENVIRONMENT_PREFIX}{setting.upper()}"


@dataclass(frozen=True, slots=True)
class SettingOrigins:
    """Holds the places that settings are taken from; only their names, since some are secrets."""

    file: Path | None
    arguments: Collection[str]
    """The settings that `App` was given."""
    options: Collection[str]
    """The settings that the command line gives."""

    def describe_origin(self, setting: str) -> str:
        """Return where a setting comes from; empty if it has its default.

        One that is a dictionary is joined from all places that have it.
        """
        variable = name_environment_variable(setting)
        places = {
            "the command line": setting in self.options,
            "App(...)": setting in self.arguments,
            f"the environment variable {variable}": variable in map(str.upper, os.environ),
            f"{str(self.file)!r}": setting in self._read_setting_names_of_file(),
        }
        found = [place for place, has_it in places.items() if has_it]
        return " and ".join(found if setting in CLIENT_SETTINGS else found[:1])

    def _read_setting_names_of_file(self) -> Collection[str]:
        """Return the settings of the file, which was read before without an error."""
        return () if self.file is None else read_setting_names(self.file)
