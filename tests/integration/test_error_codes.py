"""Test the table of error codes against the list of Kafka's clients, and librdkafka's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from streams.runtime.clients.error_codes import KAFKA_ERRORS, LIBRDKAFKA_ERRORS, ErrorKind
from tests.brokers import IN_CI, in_ci
from tests.kafka import errors
from tests.kafka.server import JARS
from tests.processes import HANG_LIMIT_S

pytestmark = IN_CI

HERE = Path(errors.__file__).parent
RETRIED_BY_LIBRDKAFKA = {"CORRUPT_MESSAGE"}
"""Retriable in Kafka, as a batch that was damaged on its way: librdkafka has tried again before."""
LOOKED_UP_BEFORE = {"UNKNOWN_TOPIC_OR_PARTITION"}
"""Retriable in Kafka, whose producer waits for a topic: here it is looked up before it is used."""


def test_each_of_kafkas_codes_is_in_the_table_and_those_that_pass_are_retriable() -> None:
    if (reason := JARS.missing()) is not None:
        assert not in_ci(), reason
        pytest.skip(reason)
    done = subprocess.run(
        ["java", "-cp", JARS.class_path(), str(HERE / "ListErrors.java")],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=True,
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    listed = {int(code): name for code, name, _ in rows if name != "NONE"}
    assert listed == {code: name for code, (name, _) in KAFKA_ERRORS.items()}
    retriable = {name for _, name, is_retriable in rows if is_retriable == "true"}
    assert retriable - RETRIED_BY_LIBRDKAFKA - LOOKED_UP_BEFORE == {
        name for name, kind in KAFKA_ERRORS.values() if kind is ErrorKind.RETRIABLE
    }


def test_each_of_librdkafkas_own_codes_is_in_the_table() -> None:
    own = {getattr(KafkaError, name): name for name in dir(KafkaError) if is_own_code(name)}
    assert own == {code: name for code, (name, _) in LIBRDKAFKA_ERRORS.items()}


def is_own_code(name: str) -> bool:
    return name.startswith("_") and name[1:2].isupper()
