"""Run the suite's application on a node of Kafka: orders, workers, and what has to come of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams import serdes
from tests.kafka.server import RealKafka
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records
from tests.soak_app.workers import SoakWorker
from tests.versions.application import Names
from tests.versions.nodes import is_ledger_served, start_node

PARTITIONS = 3
CUSTOMERS = [f"c{number}" for number in range(10)]
RATES = {"EUR": 1, "USD": 2, "CHF": 3}
_APP = "tests.versions.application:app"


class Shop:
    """Represents the application on a node of one version, with two workers at most.

    Without a `node` it starts one. `stem` tells applications on one node apart.
    """

    def __init__(
        self, version: str, directory: Path, *, node: RealKafka | None = None, stem: str = "shop"
    ) -> None:
        self.version = version
        self.names = Names(f"{stem}-{version.replace('.', '-')}")
        self._directory = directory
        self.node = node or start_node(version)
        self.servers = self.node.bootstrap_servers
        self.settings = {
            "VERSIONS_APPLICATION": self.names.application,
            "MILLRACE_NUM_STANDBY_REPLICAS": "1",
            "MILLRACE_COMMIT_INTERVAL_MS": "50",
            "MILLRACE_REPARTITION_PURGE_INTERVAL_MS": "3600000",  # Spark reads what was there
            "MILLRACE_LEDGER": str(is_ledger_served(version)).lower(),
        }
        self.workers: dict[str, SoakWorker] = {}
        self.expected: Counter[str] = Counter()
        self.owed: Counter[str] = Counter()

    def open(self) -> None:
        """Create the topics and send the tables; `close` ends the node if that fails."""
        names = self.names
        for topic in (names.orders, names.customers, names.rates, names.priced, names.owed):
            self.create(topic)
        self.send(names.customers, {each: f"name of {each}".encode() for each in CUSTOMERS})
        self.send(names.rates, {each: serdes.int64.serialize(at) for each, at in RATES.items()})

    def create(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(HANG_LIMIT_S)
        wait_until(
            lambda: topic in admin.list_topics(timeout=HANG_LIMIT_S).topics,
            what=f"{topic} to be listed",
        )

    def make_again(self, topic: str) -> None:
        """Delete a topic and create it again, as soon as the node lets."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_topics([topic])[topic].result(HANG_LIMIT_S)

        def is_created() -> bool:
            try:
                self.create(topic)
            except KafkaException:  # the deletion goes on
                return False
            return True

        wait_until(is_created, what=f"{topic} can't be created again")

    def send(self, topic: str, pairs: Mapping[str, bytes]) -> None:
        settings = {"bootstrap.servers": self.servers, "partitioner": "murmur2_random"}
        producer = Producer(settings)
        for key, value in pairs.items():
            producer.produce(topic, value, key)
        assert producer.flush(HANG_LIMIT_S) == 0

    def order(self, count: int) -> None:
        """Send so many orders, and add up what is to come of them."""
        orders: dict[str, bytes] = {}
        begin = self.expected.total()
        for number in range(begin, begin + count):
            customer = CUSTOMERS[number % len(CUSTOMERS)]
            currency = sorted(RATES)[number % len(RATES)]
            order = {"id": number, "customer": customer, "amount": number, "currency": currency}
            orders[str(number)] = json.dumps(order).encode()
            price = number * RATES[currency]
            self.expected[f"{number} {customer} name of {customer} {price}"] += 1
            self.owed[customer] += price
        self.send(self.names.orders, orders)

    def start(self, name: str) -> SoakWorker:
        """Start a worker, on the state that the one of this name has left."""
        if name in self.workers:
            self.workers[name].start()
        else:
            state = self._directory / name
            self.workers[name] = SoakWorker(name, self.servers, state, self.settings, _APP)
        return self.workers[name]

    def read_priced(self) -> Counter[str]:
        """Return how often each priced order has been committed."""
        found: Counter[str] = Counter()
        for message in records(self.servers, self.names.priced, PARTITIONS):
            order = json.loads(message.value())
            found[f"{order['id']} {order['customer']} {order['name']} {order['price']}"] += 1
        return found

    def read_owed(self) -> dict[str, int]:
        """Return the last sum of each customer."""
        messages = records(self.servers, self.names.owed, PARTITIONS)
        return {each.key().decode(): serdes.int64.deserialize(each.value()) for each in messages}

    def wait_for_all(self) -> None:
        """Wait until each order has come through, and fail if one has come twice."""
        wait_until(
            lambda: self.read_priced() >= self.expected and self.read_owed() == dict(self.owed),
            what=lambda: (
                f"missing {self.expected - self.read_priced()}; {self.workers_tail()[-3_000:]}"
            ),
        )
        assert self.read_priced() == self.expected

    def workers_tail(self) -> str:
        return "\n".join(each.log_tail() for each in self.workers.values())

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Millrace's to its end; `settings` are the application's."""
        chosen = {f"MILLRACE_{name.upper()}": value for name, value in settings.items()}
        return subprocess.run(
            [sys.executable, "-m", "streams", *arguments],
            env={**self._environment(), **self.settings, **chosen},
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
            check=False,
        )

    def run_there(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the node's address."""
        return self.run(*arguments, "--bootstrap-servers", self.servers)

    def describe_group(self) -> dict[str, Any]:
        done = self.run_there("group", "describe", self.names.application, "--json")
        assert done.returncode == 0, done.stderr
        described: dict[str, Any] = json.loads(done.stdout)
        return described

    def end_workers(self) -> None:
        """Kill the workers."""
        for worker in self.workers.values():
            worker.kill()
            worker.close()

    def close(self) -> None:
        """Kill the workers, and end the node."""
        self.end_workers()
        self.node.close()

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "MILLRACE_BOOTSTRAP_SERVERS": self.servers,
            "MILLRACE_STATE_DIR": str(self._directory / "one"),
        }
