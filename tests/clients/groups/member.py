"""Run a group member with librdkafka: `member.py HOST:PORT TOPIC GROUP [SETTING=VALUE ...]`.

The settings are the consumer's, and these: `regex`, to subscribe to instead of the topic; `output`,
a topic that records are copied to, transaction by transaction, with the offsets in them, and
`transactional.id` for that. Without an output each record is consumed at least once and then
committed. It says what happens to it as `events` tells, and goes on until it gets SIGTERM.

An error in a transaction leaves its outcome unknown: a new producer settles it, and the consumer
goes back to what is committed.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

PATIENCE_S = 10.0
RECORDS_A_COMMIT = 40
# Of a broker that is killed: it is looked for again soon, and at its old address (decision 0001).
AFTER_A_KILL = {"reconnect.backoff.max.ms": 500, "metadata.recovery.strategy": "none"}


def say(what: str, *numbers: int | str) -> None:
    sys.stdout.write(f"{time.monotonic_ns()} {what} {' '.join(map(str, numbers))}\n")


class Member:
    """Holds a consumer, what it has consumed and not committed, and perhaps a producer."""

    def __init__(self, servers: str, topic: str, group: str, settings: dict[str, str]) -> None:
        self._servers = servers
        self._topic = topic
        self._output = settings.pop("output", None)
        self._transactional_id = settings.pop("transactional.id", None)
        subscribed = settings.pop("regex", topic)
        self._producer: Producer | None = None
        # Whether a producer is to be made, and the outcome of the last transaction to be found out.
        self._is_unsettled = self._output is not None
        self._pending: dict[int, int] = {}
        self._uncommitted = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                **AFTER_A_KILL,
                **settings,
            }
        )
        self._consumer.subscribe(
            [subscribed], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def turn(self) -> None:
        """Take one record, or commit those that were taken."""
        if self._is_unsettled:
            self._settle()
            return
        message = self._consumer.poll(0.1)
        if message is None:
            self._commit()
        elif message.error():
            print(f"poll: {message.error()}", file=sys.stderr)
            if message.error().fatal():
                raise KafkaException(message.error())
        elif not self._is_unsettled:
            self._take(message)
            if self._uncommitted >= RECORDS_A_COMMIT:
                self._commit()
        sys.stdout.flush()

    def close(self) -> None:
        """Commit, and leave the group."""
        self._commit()
        self._consumer.close()

    def _take(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        if self._producer is not None:
            try:
                if not self._pending:
                    self._producer.begin_transaction()
                self._producer.produce(self._output, value, partition=partition)
            except KafkaException as error:
                self._unsettle(error)
                return
        say("consumed", partition, offset, value.decode())
        self._pending[partition] = offset + 1
        self._uncommitted += 1

    def _commit(self) -> None:
        """Commit what is pending.

        What is refused stays pending until it is revoked or lost.
        """
        if not self._pending:
            return
        sys.stdout.flush()
        asked_ns = time.monotonic_ns()
        next_offsets = [
            TopicPartition(self._topic, partition, offset)
            for partition, offset in self._pending.items()
        ]
        self._uncommitted = 0
        try:
            if self._producer is None:
                done = self._consumer.commit(offsets=next_offsets, asynchronous=False)
            else:
                self._transact(self._producer, next_offsets)
                done = next_offsets
        except KafkaException as error:
            if self._producer is None:
                print(f"commit: {error}", file=sys.stderr)
            else:
                self._unsettle(error)
            return
        for each in done:
            if each.error is None:
                say("committed", each.partition, each.offset, asked_ns)
                del self._pending[each.partition]
            else:
                print(f"commit: {each}: {each.error}", file=sys.stderr)

    # Transactions

    def _transact(self, producer: Producer, next_offsets: Iterable[TopicPartition]) -> None:
        metadata = self._consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(list(next_offsets), metadata, PATIENCE_S)
        producer.commit_transaction(PATIENCE_S)

    def _unsettle(self, why: object) -> None:
        print(f"transaction: {why}", file=sys.stderr)
        self._pending = {}
        self._uncommitted = 0
        self._is_unsettled = True

    def _settle(self) -> None:
        """Replace the producer, which fences the old one, and seek to what is committed.

        A partition that is not read yet will begin there by itself.
        """
        try:
            self._producer = Producer(
                {
                    "bootstrap.servers": self._servers,
                    "transactional.id": self._transactional_id,
                    "transaction.timeout.ms": 6_000,
                    "linger.ms": 0,
                    **AFTER_A_KILL,
                }
            )
            self._producer.init_transactions(PATIENCE_S)
            assigned = self._consumer.assignment()
            for each in self._consumer.committed(assigned, PATIENCE_S) if assigned else ():
                self._seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
            self._is_unsettled = False
        except KafkaException as error:
            print(f"settling: {error}", file=sys.stderr)

    def _seek(self, to: TopicPartition) -> None:
        try:
            self._consumer.seek(to)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise

    # What the consumer calls

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        say("assigned", *(each.partition for each in partitions))

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        for each in partitions:
            self._pending.pop(each.partition, None)
        say("revoked", *(each.partition for each in partitions))

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if self._producer is not None and self._pending:
            self._unsettle("partitions are lost")
        for each in partitions:
            self._pending.pop(each.partition, None)
        say("lost", *(each.partition for each in partitions))


def main() -> None:
    servers, topic, group, *pairs = sys.argv[1:]
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    member = Member(servers, topic, group, dict(each.split("=", 1) for each in pairs))
    while not ended:
        member.turn()
    member.close()
    say("closed")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
