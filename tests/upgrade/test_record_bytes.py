"""Test that Kafka's own classes make the bytes that the unit tests hold for Kafka's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import brokers
from tests.kafka.server import JVM_FLAGS, class_path, missing
from tests.processes import HANG_LIMIT_S
from tests.unit.coordinator.groups.classic import test_records as groups
from tests.unit.coordinator.groups.consumer.golden import GOLDEN
from tests.unit.coordinator.groups.streams.golden import STREAMS_GOLDEN
from tests.unit.coordinator.offsets import test_records as offsets

SOURCE = Path(__file__).with_name("RecordBytes.java")


class Case(NamedTuple):
    """Holds a record in the words of Kafka's schemas, and the bytes held for it, in hex."""

    wanted: dict[str, Any]
    key: str
    value: str  # "": a tombstone


def cases() -> Iterator[Case]:
    for golden in (*GOLDEN, *STREAMS_GOLDEN):
        yield Case(
            {
                "type": golden.type,
                "version": 0,
                "key": golden.schema_key,
                "value": golden.schema_value,
            },
            golden.key,
            golden.value or "",
        )
    for version, value in enumerate((groups.V0, groups.V1, groups.V2, groups.V3, groups.V4)):
        wanted = {"type": 2, "key": {"group": "counts"}, "value": classic_group(version)}
        yield Case({**wanted, "version": version}, groups.KEY.hex(), value.hex())
    key = {"group": "counts", "topic": "words", "partition": 2}
    for version, held in enumerate(offsets.VERSIONS):
        wanted = {"type": 1, "key": key, "value": offset(version)}
        yield Case({**wanted, "version": version}, offsets.KEY.hex(), held)
    with_id = {**offset(4), "topicId": "AAAAAAAAAAEAAAAAAAAAAg"}
    wanted = {"type": 1, "key": key, "value": with_id}
    yield Case({**wanted, "version": 4}, offsets.KEY.hex(), offsets.WITH_ID.hex())


def classic_group(version: int) -> dict[str, Any]:
    """Return the group of `test_records`."""
    members: list[dict[str, Any]] = [
        {
            "memberId": name,
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "sessionTimeout": 45_000,
            "subscription": subscription,
            "assignment": assignment,
            **({"rebalanceTimeout": 300_000} if version >= 1 else {}),
            **({"groupInstanceId": instance_id} if version >= 3 else {}),
        }
        for name, instance_id, subscription, assignment in (
            ("m1", "i1", "AQI=", "Aw=="),
            ("m2", None, "", ""),
        )
    ]
    return {
        "protocolType": "consumer",
        "generation": 5,
        "protocol": "range",
        "leader": "m1",
        "members": members,
        **({"currentStateTimestamp": 1_700_000_000_123} if version >= 2 else {}),
    }


def offset(version: int) -> dict[str, Any]:
    """Return the offset of `test_records`."""
    return {
        "offset": 42,
        "metadata": "meta",
        "commitTimestamp": 1_700_000_000_123,
        **({"expireTimestamp": -1} if version == 1 else {}),
        **({"leaderEpoch": 0} if version >= 3 else {}),
    }


def test_kafka_s_serializer_makes_the_bytes_that_ours_is_compared_with() -> None:
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    asked = list(cases())
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", class_path(), str(SOURCE)],
        input="".join(json.dumps(each.wanted) + "\n" for each in asked),
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{each.key}\t{each.value}" for each in asked]
