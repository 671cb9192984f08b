"""Test that no producer id is ever given twice, whatever a broker's logs lose."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from coordinator.broker import Broker
from coordinator.config import BrokerConfig
from coordinator.coordinators import METADATA_TOPIC, TRANSACTION_TOPIC
from coordinator.errors import Code
from coordinator.shard import loading
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.disks import MemoryDisk
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import AtOnce
from tests.unit.coordinator.test_repair import damage, flip, log_files

DATA = Path("/data")


def loaded(disk: MemoryDisk, clock: FakeClock, **settings: object) -> Broker:
    config = BrokerConfig.from_settings(DATA, settings)
    broker = Broker(config, clock, clock, disk, background=AtOnce())
    broker.start_without_listening()
    return broker


def producer_id(broker: Broker) -> int:
    return broker.coordinators.transactions.init_producer_id(None, 1_000, -1, -1).producer_id


@pytest.mark.parametrize("was_made_by_an_older_broker", [False, True])
def test_retention_for_all_topics_leaves_the_producer_ids_alone(
    was_made_by_an_older_broker: bool,
) -> None:
    disk, clock = MemoryDisk(), FakeClock()
    broker = loaded(disk, clock)
    if was_made_by_an_older_broker:
        broker.topics.save_and_replace_configs(METADATA_TOPIC, {"retention.ms": "-1"})
    first = producer_id(broker)
    broker.close()
    for _ in range(2):
        broker = loaded(disk, clock, **{"log.retention.bytes": 0, "log.retention.ms": 1})
        clock.advance(400_000)  # retention is looked at every 300 s
        broker.close()
    assert producer_id(loaded(disk, clock)) > first


def new_id(client: Client, transactional_id: str | None = None) -> tuple[int, int]:
    """Return InitProducerId's code and producer id."""
    answer = client.ask(22, 4, transactional_id=transactional_id, transaction_timeout=1_000)
    return answer.error_code, answer.producer_id


def load(client: Client) -> None:
    while not client.broker.coordinators.is_loaded:
        client.scheduler.pending(0)[-1]()


def without_its_log(tmp_path: Path) -> int:
    """Stop a broker and remove the log of the producer ids; return the last one given."""
    client = Client(tmp_path)
    for _ in range(3):
        new_id(client)
    for _ in range(2):
        _, taken = new_id(client, "app")
    client.broker.close()
    shutil.rmtree(tmp_path / f"{METADATA_TOPIC}-0")
    return taken


def test_no_id_is_given_before_all_transactional_ids_have_said_which_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = without_its_log(tmp_path)
    monkeypatch.setattr(loading, "QUICK_MS", -1)
    client = Client(tmp_path)
    assert new_id(client) == (Code.COORDINATOR_LOAD_IN_PROGRESS, -1)
    load(client)
    assert new_id(client) == (Code.NONE, taken + 1)
    client.broker.close()


def test_a_shard_that_resigns_before_it_is_loaded_has_not_said_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = without_its_log(tmp_path)
    monkeypatch.setattr(loading, "QUICK_MS", -1)
    client = Client(tmp_path)
    client.broker.coordinators.resign_shard(TRANSACTION_TOPIC, 0)
    load(client)
    assert new_id(client) == (Code.COORDINATOR_LOAD_IN_PROGRESS, -1)
    client.broker.coordinators.elect_shard(TRANSACTION_TOPIC, 0)
    load(client)
    assert new_id(client) == (Code.NONE, taken + 1)
    client.broker.coordinators.resign_shard(TRANSACTION_TOPIC, 0)
    assert new_id(client) == (Code.NONE, taken + 2)
    client.broker.close()


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_damaged_shard_holds_ids_back_only_if_their_log_says_nothing(
    tmp_path: Path, is_opened: bool
) -> None:
    """Check that a damaged shard blocks new ids only if the id log can't tell which are used."""
    taken = without_its_log(tmp_path)
    client = Client(tmp_path)
    assert new_id(client) == (Code.NONE, taken + 1)
    client.broker.close()
    directory = tmp_path / f"{TRANSACTION_TOPIC}-0"
    [path] = log_files(directory)
    whole = path.read_bytes()
    if not is_opened:
        (directory / "checkpoint").unlink()
    damage(path, 0, flip)
    client = Client(tmp_path)
    assert client.partition(TRANSACTION_TOPIC).is_open is is_opened
    code, further = new_id(client)
    assert (code, further > taken + 1) == (Code.NONE, True)
    client.broker.close()
    shutil.rmtree(tmp_path / f"{METADATA_TOPIC}-0")
    for _ in range(2):
        client = Client(tmp_path)
        assert new_id(client) == (Code.COORDINATOR_LOAD_IN_PROGRESS, -1)
        client.broker.close()
    path.write_bytes(whole)
    client = Client(tmp_path)
    assert new_id(client) == (Code.NONE, taken + 1)
    client.broker.close()
