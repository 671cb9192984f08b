"""Define a figure's name and text once, for its collector, its help and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

MetricKind: TypeAlias = Literal["gauge", "counter", "histogram", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """Describes one family of figures.

    `name` is the family's name as it is scraped: a counter's ends in `_total`; the samples of a
    histogram have `_bucket`, `_count` and `_sum` appended, those of a summary the last two. `unit`
    is "" for plain numbers.

    `kafka_name` is what Kafka 4.4 calls the same figure, "" if it has none. `answers` are names in
    older documents, or the questions, that this figure answers.
    """

    name: str
    kind: MetricKind
    help: str
    group: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    level: str = "info"
    kafka_name: str = ""
    answers: str = ""

    @property
    def family_name(self) -> str:
        """Return the name by which prometheus_client knows the family: without `_total`."""
        return self.name.removesuffix("_total") if self.kind == "counter" else self.name
