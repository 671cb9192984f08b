"""Name the refusals with which an application may answer to days that have passed.

Each has a cause in the history: without it, the refusal is a violation, as a wrong result is.
"""

from __future__ import annotations

import re
from enum import Enum


class Cause(Enum):
    """Names what happened to an application, and what its refusal says then."""

    UNREAD = r"offset_out_of_range=fail|are lost"
    """Records expired that it had not read."""
    UNMOVED = r"markers of transactions or aborted records alone"
    """A position behind aborted records was not committed yet when all workers were killed."""
    OFFSETS = r"committed offset|nothing is committed|was not committed by group"
    """Its group was empty for longer than committed offsets are kept."""
    TOPIC = r"another topic of the same name|made again|topic id"
    """A topic was deleted and made again."""
    RESET = r"was deleted|ends at"
    """Its changelog was deleted, as a reset does first."""
    PARTITIONS = r"partitions"
    """A topic of its input has got another partition."""
    LAYOUT = r"its retention or its grace was changed .* is left as it is"
    """A store is in the layout of a former version, and its changelog has lost records."""
    POLICY = r"cleanup\.policy|retention\.ms|were removed"
    """The settings of one of its topics were changed while it ran."""


def find_cause(error: Exception, causes: set[Cause]) -> Cause | None:
    """Return the cause that the error names, of those that there were; None if there is none."""
    return next((each for each in causes if re.search(each.value, str(error))), None)
