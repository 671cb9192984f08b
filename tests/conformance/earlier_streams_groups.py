"""Compare random histories of streams groups on this broker and on another release of Kafka.

    python -m tests.conformance.earlier_streams_groups [--version 4.3.0] [--seeds 20]

This broker does as the release that `tests.kafka.versions` calls the yardstick. For each seed the
first call is printed that the other release answers otherwise. Of 4.3 it is left out what that
release refuses altogether: static members and offsets of tasks.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.conformance.test_random_streams_groups import StreamsHistory
from tests.conformance.wire import Api, Client
from tests.kafka.server import RealKafka
from tests.kafka.versions import YARDSTICK

SHOWN_CHARACTERS = 600  # of a line


def run_history(broker: Broker, seed: int, *, is_for_4_3: bool) -> list[str]:
    """Run the history of a seed on a broker; return its lines."""
    names = tuple(f"{stem}-{seed}" for stem in "abrc")
    with Client(broker.bootstrap_servers, complete=broker.kind == "kafka") as client:
        history = StreamsHistory(client, seed, f"group-{seed}", names, is_for_4_3=is_for_4_3)
        history.run()
    return history.lines


def compare(
    version: Annotated[
        str, typer.Option(help="A release of Kafka that has streams groups.")
    ] = "4.3.0",
    seeds: Annotated[int, typer.Option(help="How many histories are compared.")] = 20,
) -> None:
    """Print the first difference of each history, and how many have none."""
    brokers: list[Broker] = [RealKafka(SETTINGS, version=version), EmbeddedProcess(SETTINGS)]
    equal_count = 0
    try:
        for broker in brokers:
            broker.start()
            with Client(broker.bootstrap_servers) as client:
                for kind in (0, 1):  # upon which real Kafka creates the coordinators' topics
                    client.send(Api.FIND_COORDINATOR, 2, key="anything", key_type=kind)
        for seed in range(seeds):
            theirs, ours = (
                run_history(broker, seed, is_for_4_3=version < YARDSTICK) for broker in brokers
            )
            pairs = enumerate(zip(theirs, ours, strict=False))  # their ends differ after a line
            differing = [step for step, (one, other) in pairs if one != other]
            equal_count += not differing
            for step in differing[:1]:
                typer.echo(f"seed {seed}, step {step}:")
                typer.echo(f"  Kafka {version}: {theirs[step][:SHOWN_CHARACTERS]}")
                typer.echo(f"  this broker: {ours[step][:SHOWN_CHARACTERS]}")
    finally:
        for broker in brokers:
            broker.close()
    typer.echo(f"{equal_count} of {seeds} histories are equal")


if __name__ == "__main__":
    typer.run(compare)
