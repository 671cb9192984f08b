"""Print the committed records that an example has written so far.

    python -m examples.show page_views --last 20

By default from the embedded broker that the example uses too; with --bootstrap-servers from any
Kafka.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from examples.feed import Servers, State, example, load_settings
from streams.command_options import exit_on_user_error
from streams.errors import ConfigError, StreamsError
from streams.processes.embedded import find_or_start_bootstrap_servers

_WAIT_S = 10.0


def read(servers: str, topic: str) -> list[Any]:
    """Return all committed records of a topic in the order of their timestamps.

    Raises ConfigError for a topic that is not there, StreamsError if its records can't be read.
    """
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
        partitions = _list_partitions(consumer, servers, topic)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        ends = 0
        while ends < len(partitions):
            message = consumer.poll(_WAIT_S)
            error = None if message is None else message.error()
            if message is not None and error is None:
                found.append(message)
            elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                ends += 1
            else:
                reason = f"no answer in {_WAIT_S:g} s" if error is None else error.str()
                raise StreamsError(f"topic {topic!r} on {servers} can't be read: {reason}")
    finally:
        consumer.close()
    return sorted(found, key=lambda message: message.timestamp()[1])


def _list_partitions(consumer: Consumer, servers: str, topic: str) -> list[int]:
    """List a topic's partitions. Raises ConfigError if there is no such topic or no answer."""
    try:
        # All topics are listed, since a request for one topic by its name may create it.
        listed = consumer.list_topics(timeout=_WAIT_S).topics
    except KafkaException as error:
        raise ConfigError(f"no broker answers at {servers}: {error.args[0].str()}") from error
    if topic not in listed:
        raise ConfigError(f"there is no topic {topic!r} on {servers}: feed the example first")
    return list(listed[topic].partitions)


def main(
    name: Annotated[str, typer.Argument(help="The example: page_views, orders, ...")],
    last: Annotated[int, typer.Option(min=1, help="Of each topic so many.")] = 20,
    bootstrap_servers: Servers = "embedded",
    state_dir: State = None,
) -> None:
    """Print the committed records that an example has written so far."""
    with exit_on_user_error():
        servers = find_or_start_bootstrap_servers(load_settings(bootstrap_servers, state_dir))
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
