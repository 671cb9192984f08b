"""Print tables: with lines and colours on a terminal, and as plain columns where piped.

A table that is piped has one line for each row, however long it is, so that `grep` and `awk` find
all of a row in it. On a terminal a cell that is too long goes on in the next line. UUIDs are
shortened to what tells them apart, in a group's tables always and in others where the table would
be wider than the terminal; if it still is, names of steps lose their middles and times their
milliseconds. `--json` has all of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

PIPED_WIDTH = 1_000_000
"""The width of tables that are written to a file or a pipe: each row is one line."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MILLISECONDS = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z$")
_ZEROS = re.compile(r"-0+(?=\d)")
_STEP_NAME = re.compile(r"K(STREAM|TABLE)-[A-Z-]+-\d{10}(-[A-Z-]+)?")
"""The names that Kafka Streams gives to steps, and to stores with them."""
_GAP = ".."
_SHORT_CHARS, _UUID_CHARS = 8, 36
_ID_CHARS_MAX, _NAME_CHARS_MAX = 24, 16


def create_table(*columns: str) -> Table:
    """Return a table with these columns, without lines where it is piped."""
    if sys.stdout.isatty():
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def create_console() -> Console:
    """Return the console of a command: as wide as the terminal, or as each row needs.

    Where it is piped it has no colours, whatever the environment asks for: they would be in cells.
    """
    if sys.stdout.isatty():
        return Console()
    return Console(width=PIPED_WIDTH, force_terminal=False)


def is_wider_than_console(table: Table, console: Console) -> bool:
    """Return whether a table has to break cells to fit a console."""
    options = console.options.update(width=PIPED_WIDTH)
    return Measurement.get(console, options, table).maximum > console.width


def shorten_uuids(texts: Iterable[str]) -> dict[str, str]:
    """Return for each text one with short UUIDs, 8 characters where that tells the texts apart."""
    known = set(texts)
    for chars in (_SHORT_CHARS, 2 * _SHORT_CHARS):
        short = {each: _cut_uuids(each, chars) for each in known}
        if _are_distinct(short.values()):
            return short
    return {each: each for each in known}


def shorten_names(texts: Iterable[str]) -> dict[str, str]:
    """Return for each text a shorter one, if it is a time or a name that Millrace gives to a step.

    Times lose their milliseconds and can be broken before the hour. Names of steps and of their
    stores have at most 16 characters: `KTABLE-SOURCE-3`, or without the middle. They stay whole
    where the short ones would not tell them apart.
    """
    known = {each: _MILLISECONDS.sub(r"\1 \2Z", each) for each in texts}
    short = {each: _shorten_step_name(each) for each in set(known.values())}
    if not _are_distinct(short.values()):
        return known
    return {each: short[text] for each, text in known.items()}


def shorten_ids(ids: Iterable[str], common_prefix: str = "") -> dict[str, str]:
    """Return for each id a text that tells it from the others, of 24 characters if that is enough.

    `common_prefix` is left out, and of a UUID only the first 8 characters are kept, or more where
    several begin alike.
    """
    known = sorted(set(ids))
    bare = {each: each.removeprefix(common_prefix) or each for each in known}
    short = bare
    for chars in (_SHORT_CHARS, 2 * _SHORT_CHARS, _UUID_CHARS):
        short = {each: _cut_uuids(text, chars) for each, text in bare.items()}
        if _are_distinct(short.values()):
            break
    cut = {each: text[:_ID_CHARS_MAX] for each, text in short.items()}
    return cut if _are_distinct(cut.values()) else short


def _cut_uuids(text: str, chars: int) -> str:
    """Return a text with the first `chars` characters of each UUID in it."""
    return _UUID.sub(lambda found: found[0][:chars], text)


def _shorten_step_name(text: str) -> str:
    """Return the name of a step without zeros and its middle, and any other text as it is."""
    if not _STEP_NAME.fullmatch(text):
        return text
    text = _ZEROS.sub("-", text).replace("-STATE-STORE", "")
    if len(text) <= _NAME_CHARS_MAX:
        return text
    end = _NAME_CHARS_MAX // 2
    return f"{text[: _NAME_CHARS_MAX - end - len(_GAP)]}{_GAP}{text[-end:]}"


def _are_distinct(texts: Collection[str]) -> bool:
    return len(set(texts)) == len(texts)
