"""Find how an application was started, for the command lines in its messages.

An App is named as the commands import it: `module:variable`. It is looked for among the variables
of the modules that are imported, the program's own first: `python app.py` runs the module `app`.
Where the program's file is not below the current directory, the commands are for its own directory.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from streams.command_lines import current_invocation, find_millrace_command, hold_invocation
from streams.settings.config import StreamsConfig

ModuleName: TypeAlias = str

_MAIN = "__main__"


def hold_application_invocation(
    app: object, application_id: str, config: StreamsConfig, given_settings: Mapping[str, Any]
) -> AbstractContextManager[None]:
    """Note an App that is about to start, until the block ends, and in the threads that it starts.

    `given_settings` are those of the App's own code.
    """
    reference, directory = current_invocation().application, None
    if not reference:
        reference, directory = locate_application(app)
    return hold_invocation(
        application=reference,
        application_directory=directory,
        application_id=application_id,
        bootstrap_servers=config.bootstrap_servers,
        state_dir=config.state_dir,
        has_connection_in_code=bool(given_settings.get("connection")),
        program=find_millrace_command(),
    )


class ApplicationLocation(NamedTuple):
    """Represents how an App is imported."""

    reference: str  # `module:variable`; empty where no module has it as a variable
    directory: Path | None  # None for the current one


def locate_application(app: object) -> ApplicationLocation:
    """Return `module:variable` of an App, and the directory from which it is imported."""
    modules = {_MAIN: sys.modules.get(_MAIN), **sys.modules}
    for name, module in modules.items():
        if not isinstance(module, ModuleType):
            continue
        variable = next((n for n, each in list(vars(module).items()) if each is app), None)
        if variable is None:
            continue
        imported_as, directory = _name_main_module(module) if name == _MAIN else (name, None)
        if imported_as:
            return ApplicationLocation(f"{imported_as}:{variable}", directory)
    return ApplicationLocation("", None)


def _name_main_module(module: ModuleType) -> tuple[ModuleName, Path | None]:
    """Return the name by which the program's own module is imported, and from which directory.

    The directory is None for the current one. Without a name the module can't be imported.
    """
    if module.__spec__ is not None:  # of `python -m NAME`
        return module.__spec__.name, None
    file = getattr(module, "__file__", None)
    if file is None:
        return "", None
    path = Path(file).absolute()
    try:
        parts = path.relative_to(Path.cwd()).with_suffix("").parts
    except ValueError:
        parts = ()
    if parts and not any("." in part for part in parts):
        return ".".join(parts), None
    return ("", None) if "." in path.stem else (path.stem, path.parent)
