"""Test that values of 10 MB pass through all parts that are told to take them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streams import App, serdes
from tests.brokers import Broker
from tests.processes import wait_until
from tests.spark.reading import load
from tests.spark.test_pairs import records_of, run
from tests.spark.topics import Written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT = 12_000_000
"""Bytes: of a batch, which has some more than its records."""
LARGE: dict[str, Any] = {"text": "ä€😀" * 1_120_000, "big": 2**63 - 1, "none": None}
DDL = "text STRING, big BIGINT, none STRING"


@pytest.mark.sampled(1, by="broker")
def test_ten_megabytes_are_typed_processed_stored_copied_and_consumed(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    servers, name = broker.bootstrap_servers, unique("large")
    values, seen = [{**LARGE, "text": "small"}, LARGE], list[Any]()
    typed, stored, copied = (f"{name}-{step}" for step in ("typed", "stored", "copied"))
    changelog = f"{name}-latest-changelog"
    for topic in (typed, stored, copied, changelog):
        policy = {"cleanup.policy": "compact"} if topic == changelog else {}
        Written(servers, topic, configs={"max.message.bytes": str(LIMIT), **policy})
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[producer]\n"message.max.bytes" = {LIMIT}\n')
    lines = "".join(f"k:{json.dumps(each, ensure_ascii=False)}\n" for each in values)
    run(
        broker, "produce", typed, "--key-separator", ":", "--value-serde", "json",
        "--config", str(settings), typed=lines,
    )  # fmt: skip
    app = App(
        name,
        bootstrap_servers=servers,
        state_dir=tmp_path / "state",
        commit_interval_ms=20,
        producer={"message.max.bytes": LIMIT},
    )
    stream = app.stream(typed, key=serdes.string, value=serdes.json).group_by_key()
    latest = stream.reduce(lambda _, new: new, store="latest")
    latest.to_stream().peek(lambda _, value: seen.append(value)).to(stored)
    with app.start():
        wait_until(lambda: LARGE in seen, what="the large value")
    assert read_json(broker, stored)[-1] == read_json(broker, changelog)[-1] == LARGE
    frame = load(spark, broker, stored, key="string", value="json", value_schema=DDL)
    frame.drop("_corrupt_record").write.format("millrace").mode("append").options(
        bootstrap_servers=servers,
        topic=copied,
        key="string",
        value="json",
        **{"kafka.message.max.bytes": str(LIMIT)},
    ).save()
    assert read_json(broker, copied)[-1] == LARGE
    read = run(broker, "consume", copied, "--until-end", "--json", "--value-serde", "json")
    assert json.loads(read.stdout.split("\n")[-2])["value"] == LARGE


def read_json(broker: Broker, topic: str) -> list[Any]:
    return [serdes.json.deserialize(value) for value, *_ in records_of(broker, topic)]
