"""Find how an application was started, for the command lines in its messages.

An App is named as the commands import it: `module:variable`. It is looked for among the variables
of the modules that are imported, the program's own first: `python app.py` runs the module `app`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

from streams.command_lines import current_invocation, find_program, hold_invocation
from streams.settings.config import StreamsConfig

_MAIN = "__main__"


def hold_application(
    app: object, application_id: str, config: StreamsConfig, given_settings: Mapping[str, Any]
) -> AbstractContextManager[None]:
    """Note an App that is about to start, until the block ends, and in the threads that it starts.

    `given_settings` are those of the App's own code.
    """
    return hold_invocation(
        application=current_invocation().application or find_reference(app),
        application_id=application_id,
        bootstrap_servers=config.bootstrap_servers,
        state_dir=config.state_dir,
        has_connection_in_code=bool(given_settings.get("connection")),
        program=find_program(),
    )


def find_reference(app: object) -> str:
    """Return `module:variable` of an App; empty where no module has it as a variable."""
    modules = {_MAIN: sys.modules.get(_MAIN), **sys.modules}
    for name, module in modules.items():
        if not isinstance(module, ModuleType):
            continue
        variable = next((n for n, each in list(vars(module).items()) if each is app), None)
        if variable is None:
            continue
        imported_as = _name_main_module(module) if name == _MAIN else name
        if imported_as:
            return f"{imported_as}:{variable}"
    return ""


def _name_main_module(module: ModuleType) -> str:
    """Return the name by which the program's own module is imported from the current directory."""
    if module.__spec__ is not None:  # of `python -m NAME`
        return module.__spec__.name
    file = getattr(module, "__file__", None)
    if file is None:
        return ""
    try:
        path = Path(file).absolute().relative_to(Path.cwd()).with_suffix("")
    except ValueError:
        return ""
    return ".".join(path.parts) if all(part.isidentifier() for part in path.parts) else ""
