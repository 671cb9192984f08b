"""Count the dead letters of an application up to a consistent cut, by the topic of their record.

A dead letter follows from an error and not from the inputs, so that no computation says which ones
there should be: their topics are in no account. What was set aside is told beside the accounts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from streams.common.counted import format_count
from streams.errors import ConfigError
from streams.settings.exception_handlers import ExceptionHandlers, Stage
from streams.spark.reconciliation.inputs import require_end_offsets_at_cut

if TYPE_CHECKING:
    from streams.spark.reconciliation.inputs import TopicRecords

_SOURCE_HEADER = "__streams.errors.topic"
NO_SOURCE = "no topic"
"""The source of a dead letter without a record, such as that of a timer, or of another program."""


@dataclass(frozen=True, slots=True)
class DeadLetterCount:
    """Represents how many dead letters a topic has at the cut, by the topic of their record.

    `topic` is None for those whose topic a function chooses. `why_unknown` is empty where they
    were counted; `removed_count` is how many first offsets of the topic are gone. What other
    applications wrote into the topic is counted with them.
    """

    topic: str | None
    counts_by_source: dict[str, int] = field(default_factory=dict)
    removed_count: int = 0
    why_unknown: str = ""

    def __str__(self) -> str:
        """Format the counts as one line."""
        where = "dead letters" if self.topic is None else f"dead letters in {self.topic}"
        if self.why_unknown:
            return f"{where} are not counted: {self.why_unknown}"
        sources = ", ".join(f"{count:,} of {name}" for name, count in self.counts_by_source.items())
        line = f"{where}: {sum(self.counts_by_source.values()):,}"
        line += f" ({sources})" if sources else ""
        if self.removed_count:
            line += f", behind {format_count(self.removed_count, 'offset')} that were removed"
        return f"{line}; they are in no account"


def count_dead_letters(
    handlers: ExceptionHandlers, records: TopicRecords
) -> tuple[DeadLetterCount, ...]:
    """Count the dead letters in each topic that the handlers name, as of the cut of `records`."""
    found = [
        _count_dead_letters_in_topic(topic, records)
        for topic in sorted({*handlers.dead_letter_topics()})
    ]
    for stage in Stage:
        if callable(handlers.handler_of(stage)):
            why = f"{stage}_handler is a function, which may choose any topic"
            found.append(DeadLetterCount(None, why_unknown=why))
    return tuple(found)


def _count_dead_letters_in_topic(topic: str, records: TopicRecords) -> DeadLetterCount:
    """Count the dead letters in a topic, or say why that can't be done."""
    try:
        ends, begins = (
            require_end_offsets_at_cut(topic, records.cut),
            records.fetch_earliest_offsets(topic),
        )
        removed_count = sum(begins.values())
        if all(begins[each] >= end for each, end in ends.items()):
            return DeadLetterCount(topic, removed_count=removed_count)
        letters = records.read_topic(topic, headers="true")
    except ConfigError as error:
        return DeadLetterCount(topic, why_unknown=str(error))
    of_name = F.filter("headers", lambda header: header["key"] == _SOURCE_HEADER)
    source = F.get(of_name, F.size(of_name) - 1)["value"].cast("STRING")
    rows = letters.groupBy(source.alias("source")).count().collect()
    counts = {row["source"] or NO_SOURCE: row["count"] for row in rows}
    return DeadLetterCount(topic, dict(sorted(counts.items())), removed_count)
