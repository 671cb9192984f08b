"""Define what the commands of `millrace group` print with --json, a line for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ListedGroupOutput:
    """Shows a group with its state and protocol."""

    group: str
    state: str
    protocol: str


@dataclass(frozen=True)
class GroupSettingOutput:
    """Shows a configuration of a group, and whether the group has a value of its own."""

    name: str
    value: str | None
    set_for_group: bool


@dataclass(frozen=True)
class DeletedGroupOutput:
    """Names a group that was deleted with all offsets; those of topics unseen aren't counted."""

    group: str
    protocol: str
    visible_offsets: int
    deleted: Literal[True]


@dataclass(frozen=True)
class ResetChangeOutput:
    """Shows a change of a reset; offsets are null where there is none."""

    change: Literal["set offset", "delete topic", "remove state"]
    what: str
    now: int | None
    then: int | None
