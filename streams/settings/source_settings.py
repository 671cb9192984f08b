"""Define the settings of an application's inputs, which each source may have of its own."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

from pydantic import BeforeValidator, PlainValidator
from pydantic_settings import BaseSettings

from streams.settings.offset_reset import parse_start_time
from streams.settings.timestamp_extractors import (
    TimestampExtractor,
    TimestampPolicy,
    TimestampPolicyName,
    parse_timestamp_extractor,
)


class SourceSettings(BaseSettings):
    """Holds the settings of inputs that have none of their own."""

    default_timestamp_extractor: Annotated[
        TimestampExtractor, PlainValidator(parse_timestamp_extractor)
    ] = TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP
    """What time a record of an input has: a name (`streams.settings.timestamp_extractors`), or a
    function of the record that returns ms since 1970."""
    start_at: Annotated[int | None, BeforeValidator(parse_start_time)] = None
    """Where a new application begins to read its inputs: at the first record that is not older than
    this time, in the place of `auto_offset_reset`. A datetime, ISO-8601 or ms since 1970."""


class SourceKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    default_timestamp_extractor: TimestampExtractor | TimestampPolicyName
    start_at: datetime | str | int | None
