"""Compare random histories of streams groups on this broker and on another release of Kafka.

    python -m tests.conformance.earlier_streams_groups [--version 4.3.0] [--seeds 22] [--keep]

This broker does as the release that `tests.kafka.versions` calls the yardstick. For each seed the
first call is printed that the other release answers otherwise. Of 4.3 it is left out what that
release refuses altogether: static members and offsets of tasks. With `--keep` the calls of Kafka
4.3 are written to `histories/`, up to the first of each seed that this broker answers otherwise
(decision 104 says why): `test_streams_groups_of_4_3` runs them against it.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tests.brokers import SETTINGS, Broker, EmbeddedProcess
from tests.conformance.kept_histories import DIRECTORY
from tests.conformance.test_random_streams_groups import StreamsHistory
from tests.conformance.wire import Api, Client
from tests.kafka.server import RealKafka
from tests.kafka.versions import YARDSTICK

SHOWN_CHARACTERS = 600  # of a line
KEPT = DIRECTORY / "of-4.3" / "streams-groups.json"


def name_topics(seed: int) -> tuple[str, ...]:
    """Return the topics of a seed: which wrong one a broker names follows Java's hashes."""
    return tuple(f"{stem}-{seed}" for stem in "abrc")


def run_history(broker: Broker, seed: int, *, is_for_4_3: bool) -> list[str]:
    """Run the history of a seed on a broker; return its lines."""
    group, names = f"group-{seed}", name_topics(seed)
    with Client(broker.bootstrap_servers, complete=broker.kind == "kafka") as client:
        history = StreamsHistory(client, seed, group, names, is_for_4_3=is_for_4_3)
        history.run()
    return history.lines


def compare(
    version: Annotated[
        str, typer.Option(help="A release of Kafka that has streams groups.")
    ] = "4.3.0",
    seeds: Annotated[int, typer.Option(help="How many histories are compared.")] = 22,
    keep: Annotated[bool, typer.Option(help="Write what 4.3 has answered alike.")] = False,
) -> None:
    """Print the first difference of each history, and how many have none."""
    brokers: list[Broker] = [RealKafka(SETTINGS, version=version), EmbeddedProcess(SETTINGS)]
    equal_count, alike = 0, {}
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
            alike[seed] = theirs[: differing[0]] if differing else theirs
            for step in differing[:1]:
                typer.echo(f"seed {seed}, step {step}:")
                typer.echo(f"  Kafka {version}: {theirs[step][:SHOWN_CHARACTERS]}")
                typer.echo(f"  this broker: {ours[step][:SHOWN_CHARACTERS]}")
    finally:
        for broker in brokers:
            broker.close()
    calls = sum(map(len, alike.values()))
    typer.echo(f"{equal_count} of {seeds} histories are equal; {calls} calls until a difference")
    if keep:
        kept = json.dumps([{"seed": seed, "lines": lines} for seed, lines in alike.items()])
        KEPT.write_text(kept.replace(', {"seed', ',\n{"seed') + "\n")


if __name__ == "__main__":
    typer.run(compare)
