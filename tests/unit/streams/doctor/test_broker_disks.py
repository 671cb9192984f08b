"""Test what is said of the free space of brokers."""

from __future__ import annotations

import pytest

from streams.doctor.broker_disks import BrokerLogDirectory, check_broker_disks
from streams.doctor.findings import Verdict

GB = 10**9


@pytest.mark.parametrize(
    ("free_bytes", "failure", "expected"),
    [
        (50 * GB, "", Verdict.FINE),
        (GB // 2, "", Verdict.WARNING),
        (0, "", Verdict.ERROR),
        (50 * GB, "KAFKA_STORAGE_ERROR", Verdict.ERROR),
    ],
)
def test_the_space_of_a_broker(free_bytes: int, failure: str, expected: Verdict) -> None:
    disk = BrokerLogDirectory("b:9092", "/data", free_bytes, 100 * GB, failure)
    (found,) = check_broker_disks([disk])
    assert found.verdict is expected
    assert "/data" in found.what


def test_a_small_disk_needs_a_part_of_it_only() -> None:
    (found,) = check_broker_disks([BrokerLogDirectory("b:1", "/d", 10**6, 10 * 10**6)])
    assert found.verdict is Verdict.FINE


def test_brokers_that_do_not_tell_their_space() -> None:
    (found,) = check_broker_disks(None)
    assert found.verdict is Verdict.NOT_LOOKED_AT
    assert list(check_broker_disks([BrokerLogDirectory("b:1", "/d", -1, -1)])) == []
