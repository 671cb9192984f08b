"""Name figures as Prometheus' JMX exporter names those of Kafka Streams."""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition


def to_scraped_name(group: str, metric: str) -> str:
    """Return the name under which the JMX exporter shows a metric of Kafka Streams or a client."""
    return f"kafka_{_choose_jmx_domain(group)}_{group}_{metric}".replace("-", "_")


def _choose_jmx_domain(group: str) -> str:
    """Return the word after `kafka.` of the domain of a group: whose metrics these are."""
    kind = group.partition("-")[0]
    return kind if kind in ("consumer", "producer") else "streams"


def define_figure(
    group: str,
    metric: str,
    help_text: str,
    labels: tuple[str, ...],
    unit: str = "",
    *,
    one_of: tuple[str, ...] = (),
    level: str = "info",
    answers: str = "",
) -> FigureDefinition:
    """Return the definition of a metric of Kafka Streams, as the JMX exporter shows it."""
    return FigureDefinition(
        name=to_scraped_name(group, metric),
        kind="gauge",
        help=help_text,
        group=group,
        unit=unit,
        labels=labels,
        one_of=one_of,
        level=level,
        answers=answers,
        kafka_name=f"kafka.{_choose_jmx_domain(group)}:type={group},attribute={metric}",
    )
