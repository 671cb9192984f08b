"""Name the entry of an offset's metadata that says whether a tool had set offsets before a start.

It is 1 if, when the task started, an offset of a partition of its inputs' topics was not committed
by the application itself; else 0. Tasks have it whose records go through a repartition topic into a
store (`streams.runtime.offsets.repeated_writes`).
"""

from __future__ import annotations

PRESET_ENTRY = "offsets set by a tool"
