"""Define what `millrace query` prints with --json, as `json_outputs` does for other commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class QueriedRowOutput:
    """Shows a row of a store; windows and sessions have their start and end."""

    key: Any
    value: Any
    timestamp_ms: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None


@dataclass(frozen=True)
class QueryResultOutput:
    """Shows the result of a registered query; `partition` is there with `--scope local`."""

    result: Any
    partition: int | None = None
