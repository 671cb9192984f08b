"""Name the processing guarantees that differ from the default, by what they change."""

from __future__ import annotations

PRODUCER_PER_TASK = "exactly_once"
"""The guarantee that gives each task a producer of its own."""

WITHOUT_TRANSACTIONS = "at_least_once"
"""The guarantee under which offsets are committed by themselves."""
