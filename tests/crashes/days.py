"""Let days pass between a crash and what comes after it, on a broker of its own.

The embedded broker and the workers have a clock that is shifted by days. Retentions are those by
default, but for transactional ids, which are kept for less time than offsets. Apache Kafka's clock
is the machine's: there records bear times of a month ago, and ids are kept for seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.brokers import SETTINGS, EmbeddedProcess
from tests.clock_shift import DAY_MS, ClockShift
from tests.conformance.transactions import describe_producers, list_transactions
from tests.conformance.wire import Client
from tests.crashes.trial import PARTITIONS, Trial
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S, wait_until

CHECKS = {
    **SETTINGS,
    "log.retention.check.interval.ms": "200",
    "offsets.retention.check.interval.ms": "200",
    "producer.id.expiration.check.interval.ms": "200",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "200",
}
THREE_DAYS = {"transactional.id.expiration.ms": str(3 * DAY_MS)}
SECONDS = {
    "transactional.id.expiration.ms": "3000",
    "producer.id.expiration.ms": "3000",
    # Kafka first looks for old records half a minute after its start.
    "log.initial.task.delay.ms": "200",
}
KEPT = {"retention.ms": "-1"}
"""Settings of inputs and outputs: event time stands while days pass, so that their records would
expire before they are read."""


class Days:
    """Represents a broker on which days pass."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.clock = ClockShift(directory / "shift")
        self.broker: EmbeddedProcess | RealKafka = (
            RealKafka({**CHECKS, **SECONDS})
            if kind == "kafka"
            else EmbeddedProcess({**CHECKS, **THREE_DAYS}, options=self.clock.broker_options)
        )
        self.broker.start()
        self._admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})

    @property
    def is_shifted(self) -> bool:
        return isinstance(self.broker, EmbeddedProcess)

    @property
    def worker_options(self) -> Mapping[str, Path]:
        return {"clock-shift": self.clock.path} if self.is_shifted else {}

    def new_trial(self, application: str, state: Path) -> Trial:
        now_ms = int(time.time()) * 1_000
        return Trial(
            self.broker.bootstrap_servers,
            application,
            state,
            begin_ms=now_ms if self.is_shifted else now_ms - 30 * DAY_MS,
            topic_settings=KEPT,
        )

    def pass_days(self, days: float) -> None:
        """Let days pass while the broker runs or is down; all that is loaded must be delivered.

        The broker forgets the producer of a batch that is in transit, and would write it twice.
        """
        if self.is_shifted:
            self.clock.pass_days(days)

    def wait_until_forgotten(self, trial: Trial) -> None:
        """Wait until the broker knows no transactional id and no producer that has no transaction.

        That one is forgotten when its transaction has ended, which may take longer.
        """
        topics = [trial.target, trial.regrouped, *map(trial.changelog, trial.specs)]
        with Client(self.broker.bootstrap_servers) as client:

            def forgotten() -> bool:
                producers = [
                    describe_producers(client, topic, number)
                    for topic in topics
                    for number in range(PARTITIONS)
                ]
                return {*list_transactions(client).values()} <= {"Ongoing"} and all(
                    isinstance(found, list) and all(each.first_offset >= 0 for each in found)
                    for found in producers
                )

            wait_until(forgotten, what="producers are forgotten")

    def expire_input(self, trial: Trial) -> None:
        """Let all records of the input expire, which the application has processed."""
        self._set_retention(trial.source, 1)
        wait_until(lambda: trial.input_left() == 0, what="the input expires")
        self._set_retention(trial.source, -1)

    def wait_until_empty(self, trial: Trial) -> None:
        """Wait until the group has no member: its offsets get old from then on."""
        asked = [trial.application]
        wait_until(
            lambda: (
                self._admin.describe_consumer_groups(asked)[asked[0]].result(HANG_LIMIT_S).state
                is ConsumerGroupState.EMPTY
            ),
            what="the group is empty",
        )

    def wait_until_offsets_expire(self, trial: Trial) -> None:
        asked = ConsumerGroupTopicPartitions(trial.application)

        def gone() -> bool:
            [found] = self._admin.list_consumer_group_offsets([asked]).values()
            offsets = found.result(HANG_LIMIT_S).topic_partitions
            return all(each.offset < 0 for each in offsets)

        wait_until(gone, what="the offsets expire")

    def _set_retention(self, topic: str, retention_ms: int) -> None:
        entry = ConfigEntry(
            "retention.ms", str(retention_ms), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(HANG_LIMIT_S)
