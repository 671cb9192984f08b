"""Test the parts of the clients that need no broker: group metadata and errors' recovery."""

from __future__ import annotations

import logging
import struct
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from streams.errors import OutcomeUnknown, StreamsError, TaskMigrated
from streams.runtime.clients import (
    encode_group_metadata,
    translate_client_error,
    translate_produce_error,
)
from streams.runtime.clients.admin_requests import count_replicas
from streams.runtime.clients.errors import LibrdkafkaLogger


def test_the_replicas_of_a_topic_are_those_of_its_least_replicated_partition() -> None:
    def topic(*replicas: list[int]) -> SimpleNamespace:
        partitions = enumerate(SimpleNamespace(replicas=each) for each in replicas)
        return SimpleNamespace(partitions=dict(partitions))

    topics = {"a": topic([1, 2, 3], [2, 3]), "b": topic([1]), "new": topic()}
    found = SimpleNamespace(brokers=dict.fromkeys((1, 2, 3)), topics=topics)
    assert count_replicas(found, ["a", "b", "new", "gone"]) == (3, {"a": 2, "b": 1})


def failure(code: int, reason: str = "why") -> KafkaException:
    return KafkaException(KafkaError(code, reason))


def test_group_metadata_of_a_dynamic_member_ends_with_a_one() -> None:
    generation = struct.pack("=i", 7)
    assert encode_group_metadata("group", 7, "member", None) == (
        b"CGMDv2:" + generation + b"group\0member\0\x01"
    )


def test_group_metadata_of_a_static_member_names_its_instance() -> None:
    generation = struct.pack("=i", 7)
    assert encode_group_metadata("group", 7, "member", "worker-0") == (
        b"CGMDv2:" + generation + b"group\0member\0\x00worker-0\0"
    )


def test_group_metadata_of_nobody_has_generation_minus_one_and_no_member() -> None:
    assert encode_group_metadata("g", -1, "", None) == b"CGMDv2:\xff\xff\xff\xffg\0\0\x01"


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
    ],
)
def test_whoever_was_replaced_has_lost_its_tasks(code: int) -> None:
    assert isinstance(translate_client_error(failure(code), "commit"), TaskMigrated)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TIMED_OUT,
        KafkaError._FATAL,
        KafkaError._STATE,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._AUTHENTICATION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.UNKNOWN,
    ],
)
def test_what_is_not_known_to_be_final_leaves_the_outcome_unknown(code: int) -> None:
    assert isinstance(translate_client_error(failure(code), "commit"), OutcomeUnknown)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.POLICY_VIOLATION,
    ],
)
def test_what_trying_again_can_not_mend_ends_the_thread(code: int) -> None:
    assert isinstance(translate_client_error(failure(code), "commit"), StreamsError)


def test_a_recovery_says_what_was_being_done_and_why_it_failed() -> None:
    error = translate_client_error(
        failure(KafkaError._TIMED_OUT, "no answer"), "commit_transaction"
    )
    assert str(error) == "commit_transaction: no answer (_TIMED_OUT)"


def test_an_error_from_produce_is_named_and_any_other_is_left_to_the_caller() -> None:
    fenced = translate_produce_error(failure(KafkaError._FENCED), "record in[0]@1", "out")
    assert isinstance(fenced, TaskMigrated)
    assert translate_produce_error(ValueError("a user's"), "record in[0]@1", "out") is None


def test_the_id_that_a_topic_got_is_read_from_librdkafkas_line_once() -> None:
    logger = LibrdkafkaLogger()
    for line in (
        "[thrd:main]: Topic in [0] Leader 1 Epoch 0",
        f"[thrd:main]: Topic in changed id from {'A' * 22} to SLEbkyQIQxOrEW4MKjrszQ",
        "[thrd:main]: Topic in changed id from SLEbkyQIQxOrEW4MKjrszQ to Cqw47Ca8TByHsbb16TbMJg",
    ):
        logger.log(logging.DEBUG, "%s [%s] %s", "METADATA", "consumer-1", line)
    assert logger.pop_seen_topic_ids() == {"in": "Cqw47Ca8TByHsbb16TbMJg"}
    assert logger.pop_seen_topic_ids() == {}


def test_a_topic_that_brokers_do_not_have_is_read_from_librdkafkas_line_until_it_is_there() -> None:
    logger = LibrdkafkaLogger()
    missing = "  Topic in with 0 partitions: Broker: Unknown topic or partition"
    for line, expected in (
        (missing, {"in"}),
        ("  Topic in with 0 partitions: Broker: Leader not available", set()),
        (missing, {"in"}),
        ("  Topic in with 2 partitions", set()),
    ):
        text = f"[thrd:main]: 127.0.0.1:9092/1: {line}"
        logger.log(logging.DEBUG, "%s [%s] %s", "METADATA", "consumer-1", text)
        assert logger.missing_topics == expected


@pytest.mark.parametrize(
    ("facility", "level"),
    [
        ("TXNERR", logging.INFO),
        ("FATAL", logging.INFO),
        ("ADDOFFSETS", logging.INFO),
        ("FAIL", logging.WARNING),
    ],
)
def test_no_line_of_librdkafka_needs_a_person_and_what_a_call_raises_is_left_to_it(
    facility: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    line = "TXNERR happened: fenced by a newer instance"
    LibrdkafkaLogger().log(logging.CRITICAL, "%s [%s] %s", facility, "producer-1", line)
    assert [line.levelno for line in caplog.records] == [level]
