"""Name figures as Prometheus' JMX exporter names those of Kafka Streams."""

from __future__ import annotations

from streams.monitoring.definitions.definition import FigureDefinition


def to_scraped_name(group: str, metric: str) -> str:
    """Return the name under which the JMX exporter shows a metric of Kafka Streams."""
    return f"kafka_streams_{group}_{metric}".replace("-", "_")


def define_figure(
    group: str,
    metric: str,
    help_text: str,
    labels: tuple[str, ...],
    unit: str = "",
    *,
    one_of: tuple[str, ...] = (),
    level: str = "info",
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
        kafka_name=f"kafka.streams:type={group},attribute={metric}",
    )
