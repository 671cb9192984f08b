"""Define bugs to be planted in a worker: each removes a guard that keeps a zombie's work out.

They are put in from outside, by replacing a function of the process; the product has no switch for
any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.runtime import changelog_reader, commit, loop
from streams.runtime.clients import Admin


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` makes of the function `name` in its place, until the process ends."""
    setattr(owner, name, make(getattr(owner, name)))


def generation_not_sent() -> None:
    """Send offsets into the transaction without member and generation, so that nobody is fenced."""

    def group_metadata(original: Any) -> Any:
        return lambda group, *_: original(group, -1, "", None)

    replace(loop, "encode_group_metadata", group_metadata)


def punctuation_commits_no_offsets() -> None:
    """Send no offsets when no input has advanced, so that nobody looks at the generation."""
    replace(commit, "_committable_offsets", lambda _: lambda tasks: [])


def restore_stops_at_the_last_stable_offset() -> None:
    """Restore stores without what an open transaction has written, and wait for nobody."""

    def begin(original: Any) -> Any:
        return lambda *arguments, required_offset, **rest: original(
            *arguments, required_offset=0, **rest
        )

    replace(Admin, "fetch_latest_offsets", lambda _: Admin.fetch_last_stable_offsets)
    replace(changelog_reader, "find_restore_start", begin)


BUGS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (
        generation_not_sent,
        punctuation_commits_no_offsets,
        restore_stops_at_the_last_stable_offset,
    )
}
