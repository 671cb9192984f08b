"""Test the settings of groups, even of missing ones, and levels of the broker's loggers."""

from __future__ import annotations

import pytest

from coordinator.errors import Code
from tests.conformance.calls import eventually
from tests.conformance.configs import (
    APPEND,
    BROKER_LOGGER,
    DELETE,
    DONE,
    GROUP,
    SET,
    alter,
    describe,
    value,
    values,
)
from tests.conformance.wire import Client


def test_the_level_of_a_logger_can_be_set(client: Client) -> None:
    [before] = describe(client, (BROKER_LOGGER, "1"), keys=["root"])
    level = before["configs"][0]["value"]
    assert alter(client, BROKER_LOGGER, "1", ("root", SET, "FATAL")) == DONE
    assert value(client, BROKER_LOGGER, "1", "root") == "FATAL"
    assert alter(client, BROKER_LOGGER, "1", ("root", SET, level)) == DONE


@pytest.mark.parametrize(
    ("key", "operation", "given", "code", "message"),
    [
        (
            "root",
            SET,
            "foo",
            Code.INVALID_CONFIG,
            (
                "Cannot set the log level of root to foo as it is not a supported log level. "
                "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
            ),
        ),
        ("no.such", SET, "INFO", Code.INVALID_CONFIG, "Logger no.such does not exist!"),
        (
            "root",
            DELETE,
            None,
            Code.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "root",
            APPEND,
            "INFO",
            Code.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_a_level_that_can_t_be_is_refused_with_the_reason(
    client: Client, key: str, operation: int, given: str | None, code: Code, message: str
) -> None:
    assert alter(client, BROKER_LOGGER, "1", (key, operation, given)) == (code, message)


def test_a_group_s_setting_is_kept_though_there_is_no_such_group(
    client: Client, group: str
) -> None:
    key = "consumer.session.timeout.ms"
    assert alter(client, GROUP, group, (key, SET, "50000")) == DONE
    own = {key: ("50000", 8, [(key, "50000", 8), (f"group.{key}", "45000", 5)])}
    assert eventually(lambda: values(client, GROUP, group, key), own) == own
    assert alter(client, GROUP, group, (key, DELETE, None)) == DONE


@pytest.mark.parametrize(
    ("key", "given", "default"),
    [
        ("streams.num.warmup.replicas", "3", "2"),
        ("streams.acceptable.recovery.lag", "9223372036854775807", "10000"),
        ("streams.task.offset.interval.ms", "30000", "60000"),
        ("streams.assignor.offload.enable", "false", "true"),
        ("consumer.assignor.offload.enable", "false", "true"),
        ("share.assignor.offload.enable", "false", "true"),
    ],
)
def test_an_internal_setting_is_described_for_a_group_that_has_it(
    client: Client, group: str, key: str, given: str, default: str
) -> None:
    assert values(client, GROUP, group, key) == {}
    assert alter(client, GROUP, group, (key, SET, given)) == DONE
    own = {key: (given, 8, [(key, given, 8), (f"group.{key}", default, 5)])}
    assert eventually(lambda: values(client, GROUP, group, key), own) == own
    assert alter(client, GROUP, group, (key, DELETE, None)) == DONE


@pytest.mark.parametrize(
    ("key", "given", "message"),
    [
        ("no.such", "1", "Unknown group config name: no.such"),
        (
            "consumer.session.timeout.ms",
            "0",
            (
                "Invalid value 0 for configuration consumer.session.timeout.ms: "
                "Value must be at least 1"
            ),
        ),
        (
            "consumer.session.timeout.ms",
            "1",
            "consumer.session.timeout.ms must be in the range 500 to 60000 inclusive.",
        ),
        (
            "share.partition.max.record.locks",
            "4001",
            "share.partition.max.record.locks must be in the range 100 to 4000 inclusive.",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            "streams.num.warmup.replicas",
            "21",
            "streams.num.warmup.replicas must be less than or equal to 20",
        ),
        (
            "streams.acceptable.recovery.lag",
            "-1",
            (
                "Invalid value -1 for configuration streams.acceptable.recovery.lag: "
                "Value must be at least 0"
            ),
        ),
        (
            "streams.task.offset.interval.ms",
            "14999",
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "zone,zone",
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            "streams.assignor.name",
            "none",
            (
                "streams.assignor.name 'none' is not a registered task assignor. "
                "Registered assignors are: [sticky]."
            ),
        ),
        (
            "streams.assignor.offload.enable",
            "perhaps",
            (
                "Invalid value perhaps for configuration streams.assignor.offload.enable: "
                "Expected value to be either true or false"
            ),
        ),
        (
            "share.auto.offset.reset",
            "by_duration:PT",
            (
                "Invalid value by_duration:PT for configuration share.auto.offset.reset: "
                "Invalid value `by_duration:PT` for configuration share.auto.offset.reset. "
                "The value must be either 'earliest', 'latest' or of the format "
                "'by_duration:<PnDTnHnMn.nS>'."
            ),
        ),
    ],
)
def test_a_group_s_setting_that_can_t_be_is_refused_with_the_reason(
    client: Client, group: str, key: str, given: str, message: str
) -> None:
    assert alter(client, GROUP, group, (key, SET, given)) == (Code.INVALID_CONFIG, message)
