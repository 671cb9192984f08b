"""Test that a topic which a record has chosen, and which may not be written, fails that record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType

from streams import App, StreamsError, serdes
from streams.settings.exception_handlers import dead_letter
from tests.integration.cluster import Topics
from tests.kafka.secured.administration import Administration, create_allow_acl
from tests.kafka.secured.server import SecuredKafka
from tests.processes import HANG_LIMIT_S, wait_until
from tests.security.rights import create_user

TEXT: Any = {"key": serdes.string, "value": serdes.string}
VALUES = [f"{'secret' if number in (3, 4, 8) else 'good'} {number}" for number in range(12)]
GOOD = [value for value in VALUES if value.startswith("good")]
SECRET = [value for value in VALUES if value.startswith("secret")]


class Limited:
    """Copies records to topics that they choose, as a user who may only see one of them."""

    def __init__(self, kafka: SecuredKafka, administration: Administration, name: str) -> None:
        user = f"user-of-{name}"
        self.settings = create_user(kafka, administration, user)
        self.topics = Topics(kafka.bootstrap_servers, name)
        self.dead, self.secret = f"{name}-dead", f"{name}-secret"
        self.topics.create(self.dead, self.secret)
        topic = ResourceType.TOPIC
        rights = [
            (AclOperation.READ, topic, self.topics.source),
            (AclOperation.WRITE, topic, self.topics.target),
            (AclOperation.WRITE, topic, self.dead),
            (AclOperation.DESCRIBE, topic, self.secret),
            (AclOperation.READ, ResourceType.GROUP, name),
            (AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, "*"),
        ]
        administration.add_acls(*[create_allow_acl(user, *right) for right in rights])
        self.name = name

    def start(self, state: Path, handler: Any, guarantee: Any) -> Any:
        connection = dict(self.settings)
        app = App(
            self.name,
            bootstrap_servers=connection.pop("bootstrap.servers"),
            connection=connection,
            state_dir=state,
            processing_guarantee=guarantee,
            production_handler=handler,
            commit_interval_ms=50,
        )
        names = {"secret": self.secret, "good": self.topics.target}
        app.stream(self.topics.source, **TEXT).to(
            lambda record: names[str(record.value).split()[0]], name="copy"
        )
        producer = Producer({"bootstrap.servers": self.topics.servers})
        for value in VALUES:
            producer.produce(self.topics.source, value, "k", 0)
        assert producer.flush(HANG_LIMIT_S) == 0
        return app.start()

    def read_values(self, topic: str) -> list[str]:
        return [each.value().decode() for each in self.topics.messages(topic)]


@pytest.fixture
def limited(
    secured_kafka: SecuredKafka, administration: Administration, unique: Callable[[str], str]
) -> Limited:
    return Limited(secured_kafka, administration, unique("limited"))


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_each_record_for_such_a_topic_is_one_dead_letter_and_the_others_are_written(
    limited: Limited, tmp_path: Path, guarantee: str
) -> None:
    with limited.start(tmp_path, dead_letter(limited.dead), guarantee) as running:
        wait_until(
            lambda: set(limited.read_values(limited.topics.target)) >= set(GOOD),
            what="the good records",
        )
        wait_until(
            lambda: len(limited.read_values(limited.dead)) >= len(SECRET), what="the letters"
        )
        assert running.metrics()["recoveries"] <= 2
    assert limited.read_values(limited.dead) == SECRET
    if guarantee == "exactly_once_v2":
        assert limited.read_values(limited.topics.target) == GOOD
    assert limited.read_values(limited.secret) == []


def test_by_default_the_thread_ends_with_record_topic_and_right(
    limited: Limited, tmp_path: Path
) -> None:
    running = limited.start(tmp_path, "fail", "exactly_once_v2")
    wait_until(lambda: running.state == "ERROR", timeout_s=20, what="the end")
    with pytest.raises(StreamsError) as error:
        running.close()
    message = str(error.value)
    for part in (
        f"step 'copy' can't write {limited.topics.source}[0]@3",
        f"not allowed to Write topic '{limited.secret}': add the ACL Write on topic",
        "acls",
        "production_handler= decides",
    ):
        assert part in message, message
