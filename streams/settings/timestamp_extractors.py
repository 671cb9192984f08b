"""Parse timestamp extractors, which say what time a record of an input has.

    name                                    the record's time
    fail_on_invalid_timestamp               its own; one below 0 is an error
    log_and_skip_on_invalid_timestamp       its own; with one below 0 the record is skipped
    use_partition_time_on_invalid_timestamp its own; in the place of one below 0 the highest of the
                                            partition so far
    wallclock                               when it is taken to be processed

or a function of the record, and of that highest time if it needs a second argument, takes any
number, or calls it `partition_time_ms`: another one with a default is the function's own. The names
are those of Kafka Streams' classes, which are known too. Source: KIP-32, TimestampExtractor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Literal


class TimestampPolicy(StrEnum):
    """Names the timestamp extractors that are there."""

    FAIL_ON_INVALID_TIMESTAMP = "fail_on_invalid_timestamp"
    LOG_AND_SKIP_ON_INVALID_TIMESTAMP = "log_and_skip_on_invalid_timestamp"
    USE_PARTITION_TIME_ON_INVALID_TIMESTAMP = "use_partition_time_on_invalid_timestamp"
    WALLCLOCK = "wallclock"


TimestampPolicyName = Literal[
    "fail_on_invalid_timestamp",
    "log_and_skip_on_invalid_timestamp",
    "use_partition_time_on_invalid_timestamp",
    "wallclock",
]
"""The text of a policy, which stands for it in settings and at `app.stream`."""
TimestampExtractor = TimestampPolicy | Callable[..., int]
"""A policy, or a function of a Record, or of a Record and its partition's highest time in ms."""

_PARTITION_TIME = "partition_time_ms"
_JAVA_PACKAGE = "org.apache.kafka.streams.processor."
_JAVA_CLASSES = {
    "FailOnInvalidTimestamp": TimestampPolicy.FAIL_ON_INVALID_TIMESTAMP,
    "LogAndSkipOnInvalidTimestamp": TimestampPolicy.LOG_AND_SKIP_ON_INVALID_TIMESTAMP,
    "UsePartitionTimeOnInvalidTimestamp": TimestampPolicy.USE_PARTITION_TIME_ON_INVALID_TIMESTAMP,
    "WallclockTimestampExtractor": TimestampPolicy.WALLCLOCK,
}


def parse_timestamp_extractor(value: Any) -> TimestampExtractor:
    """Return a policy by its name or Kafka Streams' class, or the function that was given.

    Raises ValueError that lists the names.
    """
    if isinstance(value, str):
        java_class = _JAVA_CLASSES.get(value.removeprefix(_JAVA_PACKAGE))
        if java_class is not None:
            return java_class
        if value in list(TimestampPolicy):
            return TimestampPolicy(value)
    elif callable(value) and not isinstance(value, type):
        count_extractor_arguments(value)
        return value  # type: ignore[no-any-return]
    names = ", ".join(repr(str(each)) for each in TimestampPolicy)
    raise ValueError(
        f"{value!r} is not one of {names}, nor a function of the record (and of the highest time "
        "of its partition)"
    )


def count_extractor_arguments(function: Callable[..., int]) -> int:
    """Return whether a function takes the record alone (1), or the partition's time too (2).

    Raises ValueError for a function that takes neither, or whose result is to be awaited.
    """
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ValueError("a timestamp extractor returns the time: it neither yields nor is async")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return 1
    for names in (("record",), ("record", _PARTITION_TIME)):
        try:
            signature.bind(*names)
        except TypeError:
            continue
        return 2 if _takes_partition_time(signature) else len(names)
    raise ValueError(
        "a timestamp extractor is called with (record) or (record, partition_time_ms), and this "
        f"one takes {signature}"
    )


def _takes_partition_time(signature: inspect.Signature) -> bool:
    """Return whether an argument that need not be given is for the partition's highest time."""
    parameters = [
        each
        for each in signature.parameters.values()
        if each.kind not in (each.KEYWORD_ONLY, each.VAR_KEYWORD)
    ]
    first_two = parameters[:2]
    return any(each.kind is each.VAR_POSITIONAL for each in first_two) or (
        len(first_two) == 2 and first_two[1].name == _PARTITION_TIME
    )
