"""Print what a command has found: a table for people, or a line of JSON for each row.

Rows go to standard output, and messages to standard error, so that the output of a command is the
input of another one.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from state.shown_values import read_repr_safely
from state.windowed import Windowed

if TYPE_CHECKING:
    from rich.table import Table

Row = Mapping[str, Any]
"""One row: its cells by the names of the columns."""


@dataclasses.dataclass(frozen=True, slots=True)
class WindowWithUnknownEnd:
    """Represents a key in a window of which the end is not known."""

    key: Any
    start_ms: int
    end_ms: None = None


_PRINTED_DEPTH_MAX = 200
_MARGIN_CHARS, _TEXT_CHARS_MIN = 3, 8
"""The margin of a column, and the width of one of text for which those of numbers give way."""
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_rows(columns: Sequence[str], rows: Iterable[Row], *, as_json: bool) -> None:
    """Print rows as a table with these columns, or each as a line of JSON with all of its cells.

    In the table's headings blanks replace the underscores of names, and numbers are aligned right.
    Line ends and tabs in a cell are written as \\n and \\t, so that a row is a line where piped.
    Ids, then names of steps and times are shortened where the table would be wider than the
    terminal.
    """
    if as_json:
        for row in rows:
            print_json_line(row)
        return
    from streams.commands.tables import (
        create_console,
        is_wider_than_console,
        shorten_names,
        shorten_uuids,
    )

    listed = list(rows)
    cells = [[format_cell(row[column]).translate(_ESCAPES) for column in columns] for row in listed]
    console = create_console()
    table = _build_table(columns, listed, cells, console.width)
    shown = cells
    for shorten in (shorten_uuids, shorten_names):
        if is_wider_than_console(table, console):
            short = [shorten(texts) for texts in zip(*shown, strict=True)]
            shown = [[names[text] for names, text in zip(short, row, strict=True)] for row in shown]
            table = _build_table(columns, listed, shown, console.width, has_tall_headings=True)
    if shown != cells:
        print_message("ids are shortened to fit the terminal: --json has them whole")
    console.print(table)


def _build_table(
    columns: Sequence[str],
    rows: list[Row],
    cells: list[list[str]],
    width: int,
    *,
    has_tall_headings: bool = False,
) -> Table:
    """Return the table of rows with these texts, with each word of a heading in a line if wanted.

    Columns of which all is a number align right, and go on in no second line if `width` suffices.
    """
    from rich.text import Text

    from streams.commands.tables import create_table

    numbers = {
        column
        for column in columns
        if rows and all(isinstance(row[column], int | float | None) for row in rows)
    }
    digits = [
        _MARGIN_CHARS + max(len(texts[index]) for texts in cells)
        for index, column in enumerate(columns)
        if column in numbers
    ]
    are_whole = sum(digits) + _TEXT_CHARS_MIN * (len(columns) - len(digits)) <= width
    table = create_table()
    for column in columns:
        table.add_column(
            column.replace("_", "\n" if has_tall_headings else " "),
            justify="right" if column in numbers else "left",
            overflow="fold",
            no_wrap=are_whole and column in numbers,
        )
    for texts in cells:
        table.add_row(*map(Text, texts))
    return table


def print_json_line(row: Row) -> None:
    """Print a row as one line of JSON."""
    typer.echo(_dump_json(row))


def print_message(text: str) -> None:
    """Print a message for the person at the terminal, on standard error."""
    typer.echo(text, err=True)


def format_cell(value: Any) -> str:
    """Return a cell's text: nothing for None, and names separated by commas for a list."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={format_cell(each)}" for name, each in value.items())
    return format_value(value)


def format_value(value: Any) -> str:
    """Return the text of a key or a value: strings as they are, other structures as JSON."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()  # of what UTF-8 doesn't have
    if isinstance(value, bytes):
        return format_raw_bytes(value)
    if isinstance(value, Windowed | WindowWithUnknownEnd):
        return format_window(value.key, value.start_ms, value.end_ms)
    if isinstance(value, dict | list | tuple | bool) or dataclasses.is_dataclass(value):
        return _dump_json(value)
    return str(value)


def _dump_json(value: Any) -> str:
    """Return a value as one line of JSON, with texts for what JSON doesn't have.

    NaN and the infinities are the texts NaN, Infinity and -Infinity, as in Spark's JSON. Lone
    surrogates, which can't be printed, are escapes.
    """
    try:
        text = _dump_strictly(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # a key such as a tuple, NaN, or a circle
        value = _to_printable(value)
        text = _dump_strictly(value, ensure_ascii=False)
    return text if _is_utf8(text) else _dump_strictly(value, ensure_ascii=True)


def _dump_strictly(value: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(
        value, default=substitute_for_json, ensure_ascii=ensure_ascii, allow_nan=False
    )


def _to_printable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Return a value of which each part has a place in JSON: keys of dicts are texts.

    A part that holds itself, as in a pickle, or is nested deeply, is its repr. `above` has the ids
    of the parts that hold this one.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, str | int | float):
        return value
    if id(value) in above or len(above) > _PRINTED_DEPTH_MAX:
        return read_repr_safely(value)
    above = (*above, id(value))
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else format_value(key): _to_printable(each, above)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_to_printable(each, above) for each in value]
    return _to_printable(substitute_for_json(value), above)


def _is_utf8(text: str) -> bool:
    """Return whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def format_window(key: Any, start_ms: int, end_ms: int | None) -> str:
    """Return the text of a key in a window, as Kafka Streams' Windowed; ? for an unknown end."""
    return f"[{format_value(key)}@{start_ms}/{'?' if end_ms is None else end_ms}]"


def format_raw_bytes(data: bytes) -> str:
    """Return bytes in one line: as text where they are UTF-8, and else as 0x and hexadecimal.

    Line ends and tabs of a text are written as in Python, as \\n, \\r and \\t.
    """
    return to_text_or_hex(data).translate(_ESCAPES)


def to_text_or_hex(data: bytes) -> str:
    """Return bytes as text where they are printable UTF-8, and else as 0x and hexadecimal.

    Line ends and tabs count as printable, since JSON escapes them. A text that begins with 0x is
    hexadecimal, too: typed as it is, it would be other bytes.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    is_shown = not text.startswith("0x") and text.translate(_ESCAPES).isprintable()
    return text if is_shown else f"0x{data.hex()}"


def substitute_for_json(value: Any) -> Any:
    """Return the substitute that `--json` prints for a value that JSON does not have."""
    if isinstance(value, bytes):
        return to_text_or_hex(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
