"""Show: what an example has written so far, committed records only.

python -m examples.show page_views --last 20
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from examples.feed import Servers, State, configured, example
from streams.embedded import bootstrap_address

_WAIT_S = 10.0


def read(servers: str, topic: str) -> list[Any]:
    """All committed records of a topic, by their timestamps."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "show",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    found: list[Any] = []
    try:
        partitions = consumer.list_topics(topic, timeout=_WAIT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        ends = 0
        while ends < len(partitions):
            message = consumer.poll(_WAIT_S)
            if message is None:
                raise SystemExit(f"{servers} does not answer for {topic!r}")
            if message.error() is not None:
                ends += 1
            else:
                found.append(message)
    finally:
        consumer.close()
    return sorted(found, key=lambda message: message.timestamp()[1])


def main(
    name: Annotated[str, typer.Argument(help="The example: page_views, orders, ...")],
    last: Annotated[int, typer.Option(min=1, help="Of each topic so many.")] = 20,
    bootstrap_servers: Servers = "embedded",
    state_dir: State = None,
) -> None:
    """What an example has written so far, committed records only."""
    servers = bootstrap_address(configured(bootstrap_servers, state_dir))
    for topic, sink in example(name).sinks().items():
        messages = read(servers, topic)
        print(f"{topic}: {len(messages)} records")
        for message in messages[-last:]:
            key, value = message.key(), message.value()
            print(
                f"  {None if key is None else sink.key.deserialize(key)}:",
                None if value is None else sink.value.deserialize(value),
            )


if __name__ == "__main__":
    typer.run(main)
