"""Print tables: with lines and colours on a terminal, and as plain columns where piped.

A table that is piped has one line for each row, however long it is, so that `grep` and `awk` find
all of a row in it. Ids in tables are shortened to what tells them apart; `--json` has all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable

from rich import box
from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 10_000
"""The width of tables that are written to a file or a pipe: each row is one line."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHORT_CHARS, _UUID_CHARS = 8, 36
_ID_CHARS_MAX = 24


def create_table(*columns: str) -> Table:
    """Return a table with these columns, without lines where it is piped."""
    if sys.stdout.isatty():
        return Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0))


def create_console() -> Console:
    """Return the console of a command: as wide as the terminal, or as each row needs."""
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)


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


def _are_distinct(texts: Collection[str]) -> bool:
    return len(set(texts)) == len(texts)
