"""Define the settings of an application's inputs, which each source may have of its own."""

from __future__ import annotations

from typing import Annotated, TypedDict

from pydantic import PlainValidator
from pydantic_settings import BaseSettings

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


class SourceKeywords(TypedDict, total=False):
    """Holds the same settings as keyword arguments of `App`."""

    default_timestamp_extractor: TimestampExtractor | TimestampPolicyName
