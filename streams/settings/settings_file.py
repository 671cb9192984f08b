"""Read the file that `--config` names: TOML, or a `.properties` file of Kafka Streams."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, TomlConfigSettingsSource

from streams.settings.client_settings import rename_to_dotted_names
from streams.settings.properties_file import PROPERTIES_SUFFIX, read_properties


class SettingsFile(TomlConfigSettingsSource):
    """Reads the settings file; gives each setting the name that it has in other sources."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        self._setting_names = settings_cls.model_fields  # the file is read in here
        super().__init__(settings_cls)

    def __call__(self) -> dict[str, Any]:
        return rename_to_dotted_names(super().__call__())

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        if isinstance(file_path, Path) and file_path.suffix == PROPERTIES_SUFFIX:
            return read_properties(file_path, self._setting_names)
        return super()._read_file(file_path)


def read_setting_names(file: Path) -> Collection[str]:
    """Return the names of the settings in a file, which was read before without an error."""
    if file.suffix == PROPERTIES_SUFFIX:
        return read_properties(file).keys()
    return rename_to_dotted_names(tomllib.loads(file.read_text())).keys()
