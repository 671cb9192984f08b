"""Test that each format names its version, and that one more is refused by name, with no harm.

Each case takes bytes that the product has written, and adds 1 to the version in them: what a later
release would have written. docs/formats.md has the policy and a table, which is compared with this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from coordinator.embedded import EmbeddedBroker
from coordinator.log.data_directory import (
    UnusableDataDirectory,
    read_partition_metadata,
    write_partition_metadata,
)
from coordinator.log.disk import SystemDisk
from state.directory import StateDirectory
from state.disk_layout import read_checkpoint_or_hold_disk_back
from state.errors import StateError
from state.memory import MemoryDisk
from state.store_checkpoint import StoreCheckpoint
from streams import TopologyTestDriver
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError, StreamsError
from streams.ledger import LedgerTransaction, decode, encode_transaction
from streams.membership.protocol import (
    AssignmentInfo,
    SubscriptionInfo,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from streams.spark.cuts.cut import Cut
from streams.spark.exporting.manifest import ExportManifest
from streams.testing.cluster import InMemoryCluster
from streams.topology.declared import DeclaredTopology
from streams.topology.description import (
    describe_topology,
    description_from_json,
    description_to_json,
)
from tests.unit.streams.testing.apps import build_counting_app

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
INPUT = Partition("in", 0)
CUT = Cut(application_id="a", taken_ms=5, offsets={INPUT: 7}, stores={})


def add_one(data: bytes, version: bytes) -> bytes:
    """Return the bytes with the number in `version`, which is in them once, increased by 1."""
    assert data.count(version) == 1, data
    [number] = re.findall(rb"\d+", version)
    return data.replace(version, version.replace(number, b"%d" % (int(number) + 1)))


def test_offsets_of_a_later_release_are_refused_and_its_state_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = InMemoryCluster()
    monkeypatch.setattr("streams.testing.driver.InMemoryCluster", lambda: cluster)
    with TopologyTestDriver(build_counting_app()) as driver:
        for _ in range(3):
            driver.topic("in").pipe("k", "x", timestamp_ms=1)
        driver.crash()
        written = cluster.committed_offsets[INPUT]
        later = add_one(written.metadata.encode(), b"M2.").decode()
        cluster.committed_offsets[INPUT] = OffsetAndMetadata(written.offset, later)
        with pytest.raises(StreamsError, match=r"in\[0\].* by a later release .*metadata M3.* M2"):
            driver.restart()
        assert cluster.committed_offsets[INPUT].metadata == later, "untouched"
        cluster.committed_offsets[INPUT] = written
        driver.restart()
        driver.topic("in").pipe("k", "x", timestamp_ms=1)
        assert driver.store("c").get("k") == 4


def test_a_state_directory_of_a_later_release_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    marker = StateDirectory(tmp_path, "app").path / "millrace.json"
    written = marker.read_bytes()
    later = add_one(written, b'"format": 1')
    marker.write_bytes(later)
    with pytest.raises(StateError, match=r"newer version of Millrace \(format 2; this one knows 1"):
        StateDirectory(tmp_path, "app")
    assert marker.read_bytes() == later
    marker.write_bytes(written)
    StateDirectory(tmp_path, "app")


def test_a_store_whose_layout_is_not_known_is_held_back_unread() -> None:
    disk = MemoryDisk()
    disk.write_changes({b"k": b"v"}, StoreCheckpoint(7, "topic", layout="windows-of-tomorrow"))
    held, checkpoint = read_checkpoint_or_hold_disk_back(disk, "", "counts")
    assert checkpoint is None
    with pytest.raises(StateError, match="on disk windows-of-tomorrow, now key-value"):
        held.get(b"k")
    assert disk.get(b"k") == b"v"


DECLARED = DeclaredTopology("0123456789abcdef", {}, {})
SUBSCRIPTION = encode_subscription(["in"], SubscriptionInfo(("0_0",)), DECLARED)
ASSIGNMENT = encode_assignment(AssignmentInfo(("0_0",), ()))


@pytest.mark.parametrize(
    ("data", "read"),
    [(SUBSCRIPTION, decode_subscription), (ASSIGNMENT, decode_assignment)],
    ids=["subscription", "assignment"],
)
def test_user_data_of_a_later_release_is_refused(
    data: bytes, read: Callable[[bytes], object]
) -> None:
    read(data)
    with pytest.raises(ValueError, match=r"format 2, by a later release of Millrace; this one rea"):
        read(add_one(data, b'"format":1'))


def test_a_ledger_of_a_later_release_is_refused() -> None:
    data = encode_transaction(LedgerTransaction(1, 0, {"0_0": {INPUT: 1}}, {}))
    decode(data)
    with pytest.raises(ValueError, match="version 2, by a later release of Millrace; this one"):
        decode(add_one(data, b'"v":1'))


def test_a_cut_of_a_later_release_is_refused() -> None:
    data = CUT.to_json().encode()
    assert Cut.from_json(data) == CUT
    with pytest.raises(ConfigError, match="a cut of format 2: this version reads 1; take it anew"):
        Cut.from_json(add_one(data, b'"format":1'))


def test_a_manifest_of_a_later_release_is_refused() -> None:
    data = ExportManifest(
        number=1,
        previous=None,
        application_id="a",
        cut=CUT,
        created_ms=5,
        topics={},
        files=(),
        versions={},
    ).to_json()
    ExportManifest.from_json(data, "it")
    with pytest.raises(ConfigError, match="it has format 2: this version reads 1; use the version"):
        ExportManifest.from_json(add_one(data, b'"format": 1,\n    "number"'), "it")


def test_a_description_of_a_later_release_is_refused() -> None:
    data = description_to_json(describe_topology(build_counting_app().topology())).encode()
    description_from_json(data, "it")
    with pytest.raises(ConfigError, match="it has format 2, and this version of millrace reads 1"):
        description_from_json(add_one(data, b'"format": 1'), "it")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("meta.properties", b"version=1"),
        ("topics.json", b'"version": 1'),
        ("configs.json", b'"version": 1'),
    ],
)
def test_a_data_directory_of_a_later_broker_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str, version: bytes
) -> None:
    with EmbeddedBroker(data_dir=tmp_path, topics={"in": 1}):
        pass
    if name == "configs.json":  # is there once a broker's setting was altered
        (tmp_path / name).write_text(json.dumps({"version": 1, "resources": []}))
    path = tmp_path / name
    written = path.read_bytes()
    later = add_one(written, version)
    path.write_bytes(later)
    with (
        pytest.raises(
            UnusableDataDirectory, match=rf"{path} was written by a later version of the"
        ),
        EmbeddedBroker(data_dir=tmp_path),
    ):
        pass
    assert path.read_bytes() == later
    path.write_bytes(written)
    with EmbeddedBroker(data_dir=tmp_path):
        pass


def test_a_partition_of_a_later_broker_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    disk, topic_id = SystemDisk(), UUID(int=1)
    write_partition_metadata(disk, tmp_path, topic_id)
    assert read_partition_metadata(disk, tmp_path) == topic_id
    path = tmp_path / "partition.metadata"
    later = add_one(path.read_bytes(), b"version: 0")
    path.write_bytes(later)
    with pytest.raises(UnusableDataDirectory, match=rf"{path} was written by a later version of"):
        read_partition_metadata(disk, tmp_path)
    assert path.read_bytes() == later


def test_the_page_has_each_format_with_its_version() -> None:
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \|", PAGE, re.MULTILINE)
    assert dict(rows) == {
        "changelog records": "none",
        "metadata of committed offsets": "`M2.`, the text's beginning",
        "state directory": '`"format": 1` in `millrace.json`',
        "a store's files": "the layout's name in its checkpoint",
        "user data of members": '`"format":1`',
        "ledger": '`"v":1`',
        "cut": '`"format":1`',
        "manifest of an export": '`"format": 1`',
        "description of a topology": '`"format": 1`',
        "the broker's `meta.properties`": "`version=1`",
        "the broker's `topics.json`, `configs.json`": '`"version": 1`',
        "the broker's `partition.metadata`": "`version: 0`",
        "the broker's `process` file": "none",
    }
