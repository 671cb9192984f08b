"""Hold what a running worker was told: to pause, or to remain in its group when it ends.

The handle of the worker sets it, and the stream threads read it in each of their turns.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WorkerControl:
    """Holds what all threads of a worker are to do from now on."""

    is_paused: bool = False
    """Whether they process no records and call no punctuations (KIP-834)."""
    remains_in_group: bool = False
    """Whether they end without leaving the group, so that nobody gets their tasks before the
    session ends (KIP-1153)."""
