"""Name the values that some settings choose from."""

from __future__ import annotations

from typing import Literal

ProcessingGuarantee = Literal["exactly_once_v2", "exactly_once", "at_least_once"]
GroupProtocol = Literal["classic", "streams", "auto"]
LogLevel = Literal["debug", "info", "warning", "error"]
RecordingLevelName = Literal["info", "debug", "trace"]
LogFormat = Literal["text", "json"]
