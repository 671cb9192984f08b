"""Test that a data directory of an earlier commit is loaded and says what it said then."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coordinator.errors import Code
from tests.brokers import EmbeddedProcess
from tests.conformance import batches
from tests.conformance.calls import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    committed,
    end_offset,
    eventually,
    fetch,
    produce,
)
from tests.conformance.members import Member
from tests.conformance.producers import Producer
from tests.conformance.wire import Client
from tests.upgrade.earlier import ANSWERS, DATA, KEPT, as_json
from tests.upgrade.populating import (
    CARRIED_OUT,
    PLAIN,
    SETTINGS,
    TOPIC,
    carried_out,
    connect,
    said,
    state_of,
)

FOR_EVER = {"offsets.retention.minutes": str(2**31 - 1)}


@dataclass
class Loaded:
    """Represents a directory of an earlier commit, in the hands of this one's broker."""

    broker: EmbeddedProcess
    then: Any
    now: Any


@pytest.fixture(scope="module", params=sorted(KEPT.glob("*.zip")), ids=lambda path: path.stem)
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    broker = EmbeddedProcess({**SETTINGS, **FOR_EVER})
    try:
        then = unpack(request.param, broker.data_dir)
        broker.start()
        with connect(broker) as client:
            timed_out = eventually(lambda: state_of(client, "t-ongoing"), "CompleteAbort")
        assert timed_out == "CompleteAbort"
        yield Loaded(broker, then, as_json(said(broker, (*PLAIN, *then["listed"]))))
    finally:
        broker.close()


def unpack(path: Path, data: Path) -> Any:
    """Unpack the data directory where the broker looks for it; return what was said of it."""
    with zipfile.ZipFile(path) as kept:
        for name in kept.namelist():
            if name.startswith(f"{DATA}/"):
                kept.extract(name, data.parent)
        return json.loads(kept.read(ANSWERS))


@pytest.fixture
def client(loaded: Loaded) -> Iterator[Client]:
    with connect(loaded.broker) as made:
        yield made


def test_groups_are_what_they_were(loaded: Loaded) -> None:
    assert loaded.now["listed"] == loaded.then["listed"]
    assert loaded.now["described"] == loaded.then["described"]
    assert loaded.now["described"]["classic-stable"]["group_state"] == "Stable"


def test_offsets_are_what_they_were_but_for_what_was_pending(loaded: Loaded) -> None:
    assert loaded.now["offsets"] == loaded.then["offsets"]
    stable_then, stable_now = loaded.then["stable_offsets"], loaded.now["stable_offsets"]
    (topic,) = stable_then.pop("pending")["topics"]
    assert topic["partitions"][0]["error_code"] == Code.UNSTABLE_OFFSET_COMMIT
    (topic,) = stable_now.pop("pending")["topics"]
    assert topic["partitions"][0]["committed_offset"] == 50  # the transaction has timed out
    assert stable_now == stable_then


def test_transactions_are_what_they_were_but_for_the_one_that_has_timed_out(
    loaded: Loaded,
) -> None:
    then, now = loaded.then["transactions"], loaded.now["transactions"]
    assert then.pop("t-ongoing")["transaction_state"] == "Ongoing"
    now.pop("t-ongoing")
    assert now == then


def test_what_was_decided_is_carried_out(loaded: Loaded) -> None:
    assert carried_out(loaded.broker) == CARRIED_OUT


def test_data_is_read_to_the_end_that_it_had(client: Client) -> None:
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        assert end_offset(client, TOPIC, isolation=isolation) == 4
    answer = fetch(client, TOPIC, 0, isolation=READ_COMMITTED)
    first, marker, *_ = batches.decode(answer.records)
    assert (first.records, marker.marker) == (((None, b"committed"),), "commit")
    assert len(answer.aborted_transactions) == 1


def test_members_and_producers_go_on(loaded: Loaded, client: Client) -> None:
    members = loaded.then["described"]["classic-stable"]["members"]
    dynamic = next(each for each in members if each["group_instance_id"] is None)
    member = Member(client, "classic-stable", member_id=dynamic["member_id"], generation=2)
    assert member.heartbeat() == Code.NONE
    producer = Producer.init(client, "t-committed")
    before = loaded.then["transactions"]["t-committed"]
    assert (producer.producer_id, producer.epoch) == (
        before["producer_id"],
        before["producer_epoch"] + 1,
    )
    assert producer.add_offsets("in-transactions") == Code.NONE
    assert producer.stage_offset("in-transactions", TOPIC, 70) == Code.NONE
    producer.commit()
    assert committed(client, "in-transactions", TOPIC) == 70
    assert produce(client, TOPIC, batches.encode(b"new")).error_code == Code.NONE
