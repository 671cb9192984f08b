"""Read the list of all metrics of Kafka Streams and its clients, of the version in the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("kafka_streams_metrics.json")
SOURCE = Path(__file__).with_name("ListMetrics.java")


@dataclass(frozen=True, slots=True)
class ListedMetric:
    """Describes one metric of Kafka Streams: `level` is the lowest that records it."""

    group: str
    name: str
    level: str
    tags: tuple[str, ...]


def read_version() -> str:
    """Return the version of Kafka Streams whose metrics are listed."""
    version: str = json.loads(LIST.read_text())["version"]
    return version


def read_listed_metrics() -> tuple[ListedMetric, ...]:
    """Return all listed metrics, by group and name."""
    return tuple(
        ListedMetric(each["group"], each["name"], each["level"], tuple(each["tags"]))
        for each in json.loads(LIST.read_text())["metrics"]
    )
