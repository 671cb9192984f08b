"""The bytes that the unit tests hold for Kafka's are what Kafka's own classes make."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import brokers
from tests.kafka.server import JVM_FLAGS, class_path, missing
from tests.unit.coordinator.groups.consumer.golden import GOLDEN

SOURCE = Path(__file__).with_name("RecordBytes.java")


def test_kafka_s_serializer_makes_the_bytes_that_ours_is_compared_with() -> None:
    reason = missing()
    if reason:
        assert not brokers.in_ci(), reason
        pytest.skip(reason)
    wanted = "".join(
        json.dumps({"type": each.type, "key": each.schema_key, "value": each.schema_value}) + "\n"
        for each in GOLDEN
    )
    done = subprocess.run(
        ["java", *JVM_FLAGS, "-cp", class_path(), str(SOURCE)],
        input=wanted,
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{each.key}\t{each.value or ''}" for each in GOLDEN]
