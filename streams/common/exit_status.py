"""Name the type of the numbers with which processes end."""

from __future__ import annotations

from typing import TypeAlias

ExitStatus: TypeAlias = int
"""0 for success; a command's page in the documentation says what its other numbers mean."""
