"""Create an example's topics and write its input.

    python -m examples.feed page_views --count 10000

By default to the embedded broker that `millrace run examples.page_views:app` uses too; with
--bootstrap-servers to any Kafka.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from confluent_kafka import KafkaError, Message, Producer

from examples.data.inputs import Input
from millrace import App, StreamsConfig
from streams.command_options import exit_on_user_error
from streams.errors import StreamsError
from streams.graph.nodes import SinkNode, SourceNode
from streams.processes.broker_connector import BROKER_WAIT_S
from streams.processes.embedded import find_or_start_bootstrap_servers
from streams.runtime.clients import KafkaClientSupplier
from streams.settings.config import load_config

PARTITIONS = 4
Servers = Annotated[str, typer.Option(help="Kafka as host:port,...; or 'embedded'.")]
State = Annotated[Path | None, typer.Option(help="Where the embedded broker is kept.")]


class Example(NamedTuple):
    """Holds an example's application and the generator `records(seed, count)` of its input."""

    app: App
    records: Any

    def sources(self) -> dict[str, Any]:
        """Return the source node of each input topic, with the topic's serdes `key` and `value`."""
        topology = self.app.topology()
        nodes = [node for sub in topology.subtopologies for node in sub.nodes]
        found: dict[str, Any] = {
            node.topic: node for node in nodes if isinstance(node, SourceNode) and not node.internal
        }
        return found | {table.topic: table.store for table in topology.global_tables}

    def sinks(self) -> dict[str, SinkNode]:
        """Return the sink node of each output topic."""
        nodes = [node for sub in self.app.topology().subtopologies for node in sub.nodes]
        sinks = [node for node in nodes if isinstance(node, SinkNode) and not node.internal]
        return {node.topic_name: node for node in sinks}


def example(name: str) -> Example:
    """Import an example by its name. Raises ModuleNotFoundError if there is none."""
    app = importlib.import_module(f"examples.{name}").app
    return Example(app, importlib.import_module(f"examples.data.{name}").records)


def load_settings(servers: str, state_dir: Path | None) -> StreamsConfig:
    """Load the configuration for the given servers and state directory."""
    given: dict[str, Any] = {"bootstrap_servers": servers}
    if state_dir is not None:
        given["state_dir"] = state_dir
    return load_config(**given)


def write_inputs(servers: str, chosen: Example, inputs: Iterator[Input]) -> int:
    """Write all inputs to their topics with their timestamps, and return how many there were.

    Raises StreamsError if one was not delivered.
    """
    serdes = chosen.sources()
    failed: list[str] = []

    def note_failure(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error.str())

    settings = {"bootstrap.servers": servers, "partitioner": "murmur2_random"}
    producer = Producer(
        {**settings, "delivery.report.only.error": True, "on_delivery": note_failure}
    )
    written = 0
    for topic, key, value, timestamp_ms in inputs:
        source = serdes[topic]
        encoded = None if value is None else source.value.serialize(value)
        producer.produce(
            topic,
            encoded,
            None if key is None else source.key.serialize(key),
            timestamp=timestamp_ms,
        )
        written += 1
        if written % 1_000 == 0:
            producer.flush(30)
    left = producer.flush(30)
    if left or failed:
        reason = failed[0] if failed else "no answer in 30 s"
        raise StreamsError(f"{servers} did not take {left + len(failed)} records: {reason}")
    return written


def main(
    name: Annotated[str, typer.Argument(help="The example: page_views, orders, ...")],
    count: Annotated[int, typer.Option(min=1, help="How many records, about.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Another seed makes other records.")] = 7,
    bootstrap_servers: Servers = "embedded",
    state_dir: State = None,
) -> None:
    """Create an example's topics and write its input."""
    chosen = example(name)
    with exit_on_user_error():
        config = load_settings(bootstrap_servers, state_dir)
        servers = find_or_start_bootstrap_servers(config)
        topics = [*chosen.sources(), *chosen.sinks()]
        # Records have the times that the example gives them: retention must not delete them.
        settings = {topic: {"retention.ms": "-1"} for topic in topics}
        admin = KafkaClientSupplier("feed", config, servers).create_admin(retry_s=BROKER_WAIT_S)
        admin.fetch_partition_counts_at_start(BROKER_WAIT_S)
        admin.create_topics(dict.fromkeys(topics, PARTITIONS), settings, config.replication_factor)
        written = write_inputs(servers, chosen, chosen.records(seed, count))
    print(f"{written} records in {', '.join(chosen.sources())} on {servers}")


if __name__ == "__main__":
    typer.run(main)
