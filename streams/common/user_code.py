"""Find the user's own line in a traceback, and describe an error by it.

A traceback begins in our packages and often ends in a library: the line that its reader can change
is in between. It is the innermost one that is neither ours nor of an installed library nor of
Python itself. An application that is itself installed as a library has none of these: then it is
the first line that our code has called.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from pathlib import Path
from traceback import FrameSummary
from types import TracebackType

import state
from state.shown_values import read_repr_safely

_STREAMS = Path(__file__).parents[1]
_OUR_PATHS = tuple(
    f"{directory}{os.sep}"
    for directory in (_STREAMS, Path(state.__file__).parent, _STREAMS.with_name("millrace"))
)
_PYTHON_PATHS = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_LIBRARY_PARTS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_CODE_WITHOUT_FILE = ("<frozen", "<string>")
"""Names of the import machinery and of generated code; `<stdin>` and notebooks are the user's."""


def find_user_frame(tb: TracebackType | None) -> FrameSummary | None:
    """Return the innermost frame of the user's own code; None if no frame is."""
    frames = traceback.extract_tb(tb)
    own = [frame for frame in frames if _is_user_file(frame.filename)]
    if own:
        return own[-1]
    ours = [n for n, frame in enumerate(frames) if frame.filename.startswith(_OUR_PATHS)]
    called = frames[ours[-1] + 1 :] if ours else []
    return next((f for f in called if not f.filename.startswith(_CODE_WITHOUT_FILE)), None)


def describe_error(error: BaseException) -> str:
    """Describe an error with the user's function, line and source, then where it was raised.

    The second place is left out where it is the same. An error without a traceback is its `repr`.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return read_repr_safely(error)
    raised, own = frames[-1], find_user_frame(error.__traceback__) or frames[-1]
    text = f"{read_repr_safely(error)} in {own.name}, {describe_line(own)}"
    is_same = (own.filename, own.lineno) == (raised.filename, raised.lineno)
    return text if is_same else f"{text} (raised in {raised.name}, {_format_place(raised)})"


def describe_line(frame: FrameSummary) -> str:
    """Return file, line number and, where it can be read, the source of a frame's line."""
    return f"{_format_place(frame)}" + (f": `{frame.line}`" if frame.line else "")


def _format_place(frame: FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno}"


def _is_user_file(path: str) -> bool:
    """Return whether a file is neither ours, nor Python's, nor an installed library's."""
    return not (
        path.startswith((*_OUR_PATHS, *_PYTHON_PATHS, *_CODE_WITHOUT_FILE))
        or any(part in path for part in _LIBRARY_PARTS)
    )


def describe_import_error(error: Exception, module_name: str) -> str:
    """Say in one line why a module of the user's can't be imported, with the line at fault."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        if f"{module_name}.".startswith(f"{error.name}."):
            return f"no module {error.name!r} in {os.getcwd()!r}, nor installed"
        own = find_user_frame(error.__traceback__)
        importer = repr(module_name) if own is None else describe_line(own)
        return f"no module {error.name!r}, which {importer} imports"
    if isinstance(error, SyntaxError):
        source = f": `{error.text.strip()}`" if error.text else ""
        where = f"{error.filename}:{error.lineno}{source}"
        return f"{module_name!r} is no valid Python: {error.msg} in {where}"
    return f"{module_name!r} can't be imported: {describe_error(error)}"
