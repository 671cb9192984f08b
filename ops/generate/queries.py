"""Find the figures and durations that a PromQL query names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_METRIC = re.compile(r"\b(?:millrace|kafka)_\w+")
_DURATION = re.compile(r"(?P<before>\[|offset |:)(?P<number>\d+)(?P<unit>[smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SCALED_SECONDS_MIN = 3


class Figure(Protocol):
    """Describes what queries need to know of a definition of a figure."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


def find_metrics(query: str) -> set[str]:
    """Return the names of the samples that a query reads, `up` left out."""
    return set(_METRIC.findall(_QUOTED.sub('""', query)))


def list_sample_names(definitions: Iterable[Figure]) -> Iterator[str]:
    """Yield the names of the samples that figures have in Prometheus."""
    for each in definitions:
        if each.kind in ("histogram", "summary"):
            yield from (f"{each.name}_count", f"{each.name}_sum")
            if each.kind == "histogram":
                yield f"{each.name}_bucket"
        elif each.kind == "counter":
            yield each.name.removesuffix("_total") + "_total"
        else:
            yield each.name


def scale_duration(duration: str, time_scale: float) -> str:
    """Return a duration such as 5m divided by `time_scale`, in whole seconds, 3 at least."""
    seconds = int(duration[:-1]) * _SECONDS[duration[-1]]
    if not seconds or time_scale == 1:
        return duration
    return f"{max(_SCALED_SECONDS_MIN, round(seconds / time_scale))}s"


def scale_durations(query: str, time_scale: float) -> str:
    """Return a query with its ranges and offsets divided by `time_scale`."""
    return _DURATION.sub(
        lambda found: found["before"] + scale_duration(found["number"] + found["unit"], time_scale),
        query,
    )
