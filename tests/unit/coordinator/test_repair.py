"""Test that a damaged log is served again after the documented repair, without the bad batch.

While it is damaged, every other log is served.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from coordinator import repair
from coordinator.broker import Broker
from coordinator.coordinators import GROUP_TOPIC, METADATA_TOPIC, TRANSACTION_TOPIC
from coordinator.errors import Code
from coordinator.groups.state import GroupCodec
from coordinator.log.batch import RecordBatch, iterate_batches
from coordinator.offsets.state import OffsetForgotten
from coordinator.shard.coordinator_state import CoordinatorState
from tests.own_batches import encode_batch
from tests.unit.coordinator.api.client import Client
from tests.unit.coordinator.log.logs import NOW_MS, produced
from tests.unit.coordinator.world import code_of

COUNT = 8
Damage = Callable[[bytearray, RecordBatch, int], None]


def flip(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at + found.size - 3] ^= 0xFF


def break_length(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at + 8 : at + 12] = (7).to_bytes(4, "big")


def lengthen(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at + 8 : at + 12] = (1 << 30).to_bytes(4, "big")


def zero(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at : at + found.size] = bytes(found.size)


def move_back(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at : at + 8] = max(0, found.base_offset - 2).to_bytes(8, "big")


def move_on(data: bytearray, found: RecordBatch, at: int) -> None:
    data[at : at + 8] = (found.base_offset + 1_000).to_bytes(8, "big")


def break_records(data: bytearray, found: RecordBatch, at: int) -> None:
    """Break the records of a batch under a valid checksum."""
    data[at + 57 : at + 61] = (1_000).to_bytes(4, "big")
    checksum = crc32c(bytes(data[at + 21 : at + found.size]))
    data[at + 17 : at + 21] = checksum.to_bytes(4, "big")


DAMAGES = [flip, break_length, lengthen, zero]


def batch(value: bytes) -> bytes:
    """Build a batch with a key of its own, as a compacted topic requires."""
    return encode_batch([(value, value)], timestamp_ms=NOW_MS)


def log_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def damage(path: Path, index: int, how: Damage) -> int:
    """Damage the batch of this index in a file; return the position at which it begins."""
    data = bytearray(path.read_bytes())
    found = list(iterate_batches(bytes(data)))
    at = sum(each.size for each in found[:index])
    how(data, found[index], at)
    path.write_bytes(data)
    return at


def repair_what_was_logged(caplog: pytest.LogCaptureFixture) -> str:
    """Run the repair that the only logged error names; return its file."""
    [error] = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    found = re.search(r"(/\S+\.log)(?:, from byte|: damaged at byte) (\d+)", error)
    assert found is not None, error
    caplog.clear()
    assert repair.main([found[1], found[2]]) == 0
    return found[1]


def values(client: Client, topic: str) -> list[bytes | None]:
    log = client.partition(topic)
    found: list[bytes | None] = []
    offset = log.start_offset
    while data := log.read(offset, 1 << 20):
        for each in iterate_batches(data):
            found += [record.value for record in each.iterate_records()]
            offset = each.last_offset + 1
    return found


def written(tmp_path: Path) -> Client:
    """Write batches to topics `t` and `other`, with two in a segment of `t`."""
    client = Client(tmp_path)
    size = len(batch(b"0"))
    client.create("t", internal_segment_bytes=str(2 * size))
    client.create("other")
    for topic in ("t", "other"):
        for value in range(COUNT):
            assert client.produce(topic, batch(b"%d" % value)).error_code == Code.NONE
    return client


@pytest.mark.parametrize("how", DAMAGES, ids=lambda how: how.__name__)
@pytest.mark.parametrize(("file", "index"), [(0, 0), (0, 1), (1, 0), (3, 0)])
@pytest.mark.parametrize("cleanup_policy", ["delete", "compact"])
def test_a_partition_that_can_not_be_opened_is_refused_alone_and_repaired(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    how: Damage,
    file: int,
    index: int,
    cleanup_policy: str,
) -> None:
    written(tmp_path).broker.close()
    for topic in ("t", "other"):
        (tmp_path / f"{topic}-0" / "checkpoint").unlink()  # as if it had been killed early
    path = log_files(tmp_path / "t-0")[file]
    damage(path, index, how)
    before = {each: each.read_bytes() for each in log_files(tmp_path / "t-0")}
    client = Client(tmp_path)
    log = client.partition("t")
    for call in (
        lambda: log.fetch_batches(0, 1_000, committed=False, at_least_one=True),
        lambda: log.append_produced(produced()),
        lambda: log.append_marker(7, 0, True, 0),
        lambda: log.delete_records_before(-1),
    ):
        assert code_of(call) is Code.KAFKA_STORAGE_ERROR
    assert client.produce("t", batch(b"new")).error_code == Code.KAFKA_STORAGE_ERROR
    assert client.produce("other", batch(b"new")).error_code == Code.NONE
    assert client.begin("t") == {"t": Code.KAFKA_STORAGE_ERROR}
    client.broker.topics.save_and_replace_configs(
        "t", {"cleanup.policy": cleanup_policy, "retention.bytes": "0"}
    )
    log.remove_expired_segments()
    client.broker.cleaner.clean_regardless_of_ratio(log)
    client.broker.close()
    assert {each: each.read_bytes() for each in log_files(tmp_path / "t-0")} == before
    assert repair_what_was_logged(caplog) == str(path)
    after = Client(tmp_path)
    assert caplog.records == []
    lost = 2 * file + index
    assert values(after, "t") == [b"%d" % value for value in range(COUNT) if value != lost]
    assert after.produce("t", batch(b"new")).base_offset == COUNT
    assert len(values(after, "other")) == COUNT + 1
    after.broker.close()
    again = Client(tmp_path)
    assert values(again, "t")[-1] == b"new"
    again.broker.close()


def test_a_topic_that_can_not_be_opened_can_be_deleted_and_made_again(tmp_path: Path) -> None:
    written(tmp_path).broker.close()
    (tmp_path / "t-0" / "checkpoint").unlink()
    damage(log_files(tmp_path / "t-0")[0], 0, flip)
    client = Client(tmp_path)
    topic = client.broker.topics.get("t")
    assert topic is not None
    client.broker.topics.delete_topic(topic)
    client.create("t")
    assert client.produce("t", batch(b"new")).base_offset == 0
    client.broker.close()
    again = Client(tmp_path)
    assert values(again, "t") == [b"new"]
    again.broker.close()


def committed(client: Client, group: str) -> int:
    [found] = client.broker.coordinators.groups.offsets.fetch_offsets(
        group, [("other", 0, None)], require_stable=True
    )
    return found.offset


def commit(client: Client, group: str, offset: int) -> None:
    answer = client.ask(
        8,
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[
            {
                "name": "other",
                "partitions": [
                    {
                        "partition_index": 0,
                        "committed_offset": offset,
                        "committed_leader_epoch": -1,
                        "committed_metadata": "",
                    }
                ],
            }
        ],
    )
    assert answer.topics[0].partitions[0].error_code == Code.NONE


@pytest.mark.parametrize(
    ("how", "has_checkpoint"),
    [
        *((how, has) for how in (*DAMAGES, break_records) for has in (True, False)),
        # Where a log is compacted and is read from its start, a gap is no damage.
        (move_back, True),
        (move_on, True),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_shard_is_repaired_and_has_all_but_what_the_damaged_batch_said(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    how: Damage,
    index: int,
    has_checkpoint: bool,
) -> None:
    if index == 0 and how is move_back:
        pytest.skip("there is nothing before the first offset")
    if index == 2 and not has_checkpoint and how is not break_records:
        pytest.skip("a last batch that isn't whole is a torn tail, which a start cuts off")
    client = Client(tmp_path)
    client.create("other")
    for group, offset in (("a", 1), ("b", 2), ("a", 3)):
        commit(client, group, offset)
    client.ask(22, 4, transactional_id="app", transaction_timeout=1_000)
    client.broker.close()
    directory = tmp_path / f"{GROUP_TOPIC}-0"
    if not has_checkpoint:
        (directory / "checkpoint").unlink()
    [path] = log_files(directory)
    damage(path, index, how)
    before = path.read_bytes()
    for _ in range(2):
        caplog.clear()
        client = Client(tmp_path)
        assert code_of(committed, client, "a") is Code.NOT_COORDINATOR
        transactions = client.broker.coordinators.transactions
        assert transactions.init_producer_id("app", 1_000, -1, -1).producer_id == 0
        client.broker.cleaner.clean_regardless_of_ratio(client.partition(GROUP_TOPIC))
        client.broker.close()
        assert path.read_bytes() == before
    caplog.records[:] = [each for each in caplog.records if GROUP_TOPIC in each.getMessage()][-1:]
    assert repair_what_was_logged(caplog) == str(path)
    client = Client(tmp_path)
    assert caplog.records == []
    assert committed(client, "a") == (1 if index == 2 else 3)
    assert committed(client, "b") == (-1 if index == 1 else 2)
    commit(client, "b", 5)
    assert client.partition(GROUP_TOPIC).end_offset == 4, "no offset is given twice"
    client.broker.close()


def test_nothing_is_compacted_or_removed_in_the_log_of_a_failed_shard(tmp_path: Path) -> None:
    """Check that older records stay, as they may be all that can be read of a key."""
    client = Client(tmp_path)
    client.create("other")
    client.broker.topics.save_and_replace_configs(
        GROUP_TOPIC, {"cleanup.policy": "compact", "internal.segment.bytes": "300"}
    )
    for offset in range(10):
        commit(client, "a", offset)
    key, _ = GroupCodec().encode_record(OffsetForgotten("a", "other", 0))
    damaged = encode_batch([(key, b"\0\x04damaged")], timestamp_ms=NOW_MS)
    client.partition(GROUP_TOPIC).append_internal(damaged)
    for offset in range(10):
        commit(client, "b", offset)
    client.broker.close()
    before = {each: each.read_bytes() for each in log_files(tmp_path / f"{GROUP_TOPIC}-0")}
    assert len(before) > 5
    client = Client(tmp_path)
    assert shard(client.broker, GROUP_TOPIC) is CoordinatorState.FAILED
    assert client.broker.cleaner.clean_regardless_of_ratio() == 0
    client.broker.topics.save_and_replace_configs(
        GROUP_TOPIC,
        {"cleanup.policy": "delete", "retention.bytes": "0", "internal.segment.bytes": "300"},
    )
    log = client.partition(GROUP_TOPIC)
    log.remove_expired_segments()
    assert code_of(log.delete_records_before, -1) is Code.KAFKA_STORAGE_ERROR
    client.broker.close()
    after = {each: each.read_bytes() for each in log_files(tmp_path / f"{GROUP_TOPIC}-0")}
    assert after == before


def shard(broker: Broker, topic: str) -> CoordinatorState:
    coordinators = broker.coordinators
    if topic == GROUP_TOPIC:
        return coordinators.groups.shards[0].log.coordinator_state
    return coordinators.transactions.shards[0].log.coordinator_state


@pytest.mark.parametrize("topic", [GROUP_TOPIC, TRANSACTION_TOPIC])
def test_a_shard_whose_log_can_not_be_opened_has_failed_though_it_looks_empty(
    tmp_path: Path, topic: str
) -> None:
    client = Client(tmp_path)
    client.create("other")
    for offset in range(3):
        commit(client, "a", offset)
        client.ask(22, 4, transactional_id="app", transaction_timeout=1_000)
    client.broker.close()
    (tmp_path / f"{topic}-0" / "checkpoint").unlink()
    damage(log_files(tmp_path / f"{topic}-0")[0], 0, flip)
    client = Client(tmp_path)
    other = ({GROUP_TOPIC, TRANSACTION_TOPIC} - {topic}).pop()
    assert shard(client.broker, topic) is CoordinatorState.FAILED
    assert shard(client.broker, other) is CoordinatorState.ACTIVE
    client.broker.close()


def test_the_producer_ids_that_were_given_are_not_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client(tmp_path)
    client.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    client.broker.close()
    [path] = log_files(tmp_path / f"{METADATA_TOPIC}-0")
    damage(path, 0, flip)
    client = Client(tmp_path)
    answer = client.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    assert answer.error_code == Code.COORDINATOR_LOAD_IN_PROGRESS
    client.broker.close()
    before = path.read_bytes()
    assert repair.main([str(path), "0"]) == 2
    assert "they would be given again: go on as 'Repair'" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_without_its_log_producer_ids_go_on_behind_those_of_transactional_ids(
    tmp_path: Path,
) -> None:
    """Check the last resort: without a copy, and when no partition has state of the producers."""
    client = Client(tmp_path)
    for _ in range(3):
        client.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    taken = client.ask(22, 4, transactional_id="app", transaction_timeout=1_000).producer_id
    client.broker.close()
    shutil.rmtree(tmp_path / f"{METADATA_TOPIC}-0")
    client = Client(tmp_path)
    answer = client.ask(22, 4, transactional_id=None, transaction_timeout=1_000)
    assert (answer.error_code, answer.producer_id) == (Code.NONE, taken + 1)
    client.broker.close()


@pytest.mark.parametrize(
    ("name", "position", "message"),
    [
        ("other-0/00000000000000000000.log", "1", "no batch begins at byte 1 of"),
        ("other-0/00000000000000000000.log", "99999", "is damaged at byte"),
        ("other-0/00000000000000000008.log", "0", "isn't there"),
        ("other-0/00000000000000000000.index", "0", "is no segment: give a .log file"),
        ("meta.properties", "0", "is no segment: give a .log file"),
    ],
)
def test_what_is_not_damaged_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, position: str, message: str
) -> None:
    written(tmp_path).broker.close()
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    assert repair.main([str(tmp_path / name), position]) == 2
    assert message in capsys.readouterr().err
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_nothing_is_repaired_while_the_broker_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = written(tmp_path)
    assert repair.main([str(log_files(tmp_path / "t-0")[0]), "0"]) == 2
    assert "runs: stop it first" in capsys.readouterr().err
    client.broker.close()
