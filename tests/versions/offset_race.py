"""Provoke KAFKA-17507: the markers of a transaction are answered before its offsets are taken up.

    python -m tests.versions.offset_race [--version 3.9.0] [--seconds 600]

Producers commit and abort transactions with offsets of a group of their own, one right after the
other, and read the group's stable offset at once. What was committed last is what has to be read.
Prints each offset that is another one, and status 1 if there were any.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import Annotated

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streams.common.topic_partitions import Partition
from streams.membership.connection import BrokerConnection, connect_to_any_server
from streams.membership.group_offsets import fetch_offsets
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S

TOPIC = Partition("in", 0)
PRODUCERS = 4


def find_wrong_offsets(servers: str, name: str, deadline_s: float) -> Iterator[str]:
    """Yield a line for each offset that is not the one of the last committed transaction.

    At the end the number of transactions is yielded.
    """
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "linger.ms": 0})
    producer.init_transactions(HANG_LIMIT_S)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": name})
    group = consumer.consumer_group_metadata()
    connection = connect_to_any_server(
        servers, lambda to: BrokerConnection(to, name, HANG_LIMIT_S, threading.Lock())
    )
    committed, transactions = -1, 0
    with closing(consumer), closing(connection):
        for number in count():
            if time.monotonic() > deadline_s:
                break
            producer.begin_transaction()
            offsets = [TopicPartition(*TOPIC, number)]
            producer.send_offsets_to_transaction(offsets, group, HANG_LIMIT_S)
            if number % 2:
                producer.abort_transaction(HANG_LIMIT_S)
            else:
                producer.commit_transaction(HANG_LIMIT_S)
                committed = number
            transactions += 1
            # Every third one is followed by the next transaction at once.
            if number % 3:
                found = fetch_offsets(connection, name, [TOPIC])
                while found.pending:
                    found = fetch_offsets(connection, name, [TOPIC])
                if found.offsets[TOPIC].offset != committed:
                    yield f"{name}: {found.offsets[TOPIC].offset} after {committed} was committed"
    yield f"{name}: {transactions} transactions"


def main(
    version: Annotated[str, typer.Option(help="Kafka's version.")] = "3.9.0",
    seconds: Annotated[float, typer.Option(help="For how long to try.")] = 600.0,
) -> None:
    """Run the producers, and print what they have found."""
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "4"}
    settings["group.initial.rebalance.delay.ms"] = "0"
    with closing(RealKafka(settings, version=version)) as kafka:
        kafka.start()
        servers = kafka.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(TOPIC.topic, 1, 1)])[TOPIC.topic].result(HANG_LIMIT_S)
        deadline_s = time.monotonic() + seconds
        with ThreadPoolExecutor(PRODUCERS) as pool:
            lines = list(
                pool.map(
                    lambda number: list(find_wrong_offsets(servers, f"group-{number}", deadline_s)),
                    range(PRODUCERS),
                )
            )
    wrong = [line for each in lines for line in each[:-1]]
    print("\n".join([*wrong[:20], *(each[-1] for each in lines), f"{len(wrong)} wrong offsets"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
