"""Define what is said of a figure once, for its collector, its help text and the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FigureKind: TypeAlias = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureDefinition:
    """Describes one family of figures.

    `name` is the family's name as it is scraped: a counter's ends in `_total`; the samples of a
    histogram have `_bucket`, `_count` and `_sum` appended. `unit` is "" for plain numbers.
    `kafka_name` is what Kafka Streams 4.4 calls the same figure in its `group`, "" if it has none.
    Of the labels `one_of` a sample has one, beside `labels`: the kind of its store says which.
    `answers` are names in older documents, or the questions, that this figure answers.
    """

    name: str
    kind: FigureKind
    help: str
    group: str
    unit: str = ""
    labels: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    level: str = "info"
    kafka_name: str = ""
    answers: str = ""

    @property
    def family_name(self) -> str:
        """Return the name by which prometheus_client knows the family: without `_total`."""
        return self.name.removesuffix("_total") if self.kind == "counter" else self.name
