"""Import a module of the user's for a command, and let no application run meanwhile.

A module that ends in a bare `app.run()` would run the application within its import: with other
settings than the command's, and before the command has begun.
"""

from __future__ import annotations

import importlib
import threading
import traceback
from types import ModuleType

from streams.common.user_code import describe_line
from streams.errors import ConfigError
from streams.hidden_packages import describe_hidden_package


class _Importing(threading.local):
    """Holds the name of the module that this thread imports for a command, or None."""

    module_name: str | None = None


_importing = _Importing()


def import_user_module(name: str) -> ModuleType:
    """Import the module `name` and return it.

    Meanwhile `refuse_run_during_import` raises in this thread. Raises
    ConfigError if a module beside it hides a package of Millrace, and what the import does.
    """
    hidden = describe_hidden_package()
    if hidden is not None:
        raise ConfigError(hidden)
    before = _importing.module_name
    _importing.module_name = name
    try:
        return importlib.import_module(name)
    finally:
        _importing.module_name = before


def refuse_run_during_import() -> None:
    """Raise ConfigError with the line at fault if this thread imports a module for a command."""
    name = _importing.module_name
    if name is None:
        return
    frames = traceback.extract_stack()
    importers = [
        number
        for number, frame in enumerate(frames)
        if (frame.filename, frame.name) == (__file__, import_user_module.__name__)
    ]
    # The line to move is the module's own, also where that calls a function which runs it.
    lines = [frame for frame in frames[importers[-1] + 1 :] if frame.name == "<module>"]
    where = describe_line(lines[-1]) if lines else repr(name)
    raise ConfigError(
        f"{where} runs the application while `millrace` imports it: put that line below "
        '`if __name__ == "__main__":`'
    )
