"""Test that a store without a changelog is never an older one than the committed offsets, unsaid.

Nothing but its disk has it: what can't be used is refused by name, and what is lost is warned of.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from state.memory import MemoryDisk
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from streams import Store, serdes
from streams.common.topic_partitions import Partition
from streams.errors import PositionRefused, StreamsError
from streams.graph.nodes import StoreSpec
from streams.runtime.offsets.offset_metadata import decode_metadata, encode_metadata
from streams.runtime.offsets.store_commits import StoreCommits, read_store_commits
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.unlogged_commits import KeptStore, UnloggedCommits
from tests.unit.streams.runtime.kafka import Kafka
from tests.unit.streams.runtime.world import CHANGELOG, World, build_counting_topology

_TURNS_OF_A_START, _TURNS_MAX = 10, 1_000
GUARANTEES = ["exactly_once_v2", "at_least_once"]


class Machines:
    """Counts `in` on one machine after the other, each with a state directory of its own."""

    def __init__(self, path: Path, guarantee: str = "exactly_once_v2") -> None:
        self.path = path
        self._guarantee = guarantee
        self._kafka = Kafka({"in": 1, "out": 1, CHANGELOG: 1})

    def count(self, *values: str, on: str = "one", metadata_bytes_max: int = 4_096) -> None:
        """Count each value in a commit of its own, and end the worker."""
        world = World(
            build_counting_topology(Store.persistent("c", logged=False)),
            self.path / on,
            guarantee=self._guarantee,
            kafka=self._kafka,
            metadata_bytes_max=metadata_bytes_max,
        )
        waiting = list(values)
        turns = iter(range(_TURNS_MAX))

        def is_done() -> bool:
            is_idle = world.consumed() or not self._kafka.logs[Partition("in", 0)].high_watermark
            if is_idle and next(turns) > _TURNS_OF_A_START:
                if not waiting:
                    return True
                world.load(waiting.pop(0))
            return False

        world.run_until(is_done)

    def find_store(self, machine: str = "one") -> Path:
        return self.path / machine / "a" / "0_0" / "c"

    def read_counts(self) -> list[int]:
        return [int.from_bytes(value or b"", "big") for _, value in self._kafka.committed("out")]

    def replace_metadata(self, text: str) -> None:
        asked = Partition("in", 0)
        held = self._kafka.committed_offsets[asked]
        self._kafka.committed_offsets[asked] = held._replace(metadata=text)

    def read_metadata(self) -> str:
        return self._kafka.committed_offsets[Partition("in", 0)].metadata


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_an_old_copy_of_a_store_without_a_changelog_is_refused_and_left_as_it_is(
    tmp_path: Path, guarantee: str
) -> None:
    machines = Machines(tmp_path, guarantee)
    machines.count("a")
    shutil.copytree(tmp_path / "one", tmp_path / "old")
    machines.count("b", "c")
    with pytest.raises(PositionRefused, match=r"'c' of task 0_0.* is an old copy: .*put back"):
        machines.count("d", on="old")
    assert read_count(machines.find_store("old")) == 1
    machines.count("d", on="one")
    assert machines.read_counts() == [1, 2, 3, 4]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_store_that_lacks_only_the_last_commit_goes_on_with_a_warning(
    tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    machines = Machines(tmp_path, guarantee)
    machines.count("a", "b")
    shutil.copytree(tmp_path / "one", tmp_path / "crashed")  # as if it had ended before the store
    machines.count("c")
    assert not find_warnings(caplog)
    machines.count("d", on="crashed")
    (warning,) = find_warnings(caplog)
    assert "store 'c' of task 0_0" in warning
    assert "between Kafka's commit and the store's" in warning
    assert machines.read_counts() == [1, 2, 3, 3]
    caplog.clear()
    machines.count("e", on="crashed")
    assert not find_warnings(caplog)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_store_that_was_begun_anew_elsewhere_is_set_aside_with_a_warning(
    tmp_path: Path, guarantee: str, caplog: pytest.LogCaptureFixture
) -> None:
    machines = Machines(tmp_path, guarantee)
    machines.count("a", "b", on="one")
    machines.count("c", on="two")
    (warning,) = find_warnings(caplog)
    assert "store 'c' begins empty in task 0_0" in warning
    caplog.clear()
    machines.count("d", "e", on="one")
    (warning,) = find_warnings(caplog)
    assert "begins empty: the task went on elsewhere" in warning
    assert machines.read_counts() == [1, 2, 1, 1, 2]
    former = tmp_path / "one" / "a" / "former-0_0-c"
    assert str(former) in warning
    assert read_count(former) == 2
    caplog.clear()
    machines.count("f", on="one")
    assert machines.read_counts()[-1] == 3
    assert not find_warnings(caplog)


def test_a_task_that_was_elsewhere_and_wrote_nothing_there_finds_its_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machines = Machines(tmp_path)
    machines.count("a", on="one")
    machines.count(on="two")
    caplog.clear()
    machines.count("b", on="one")
    assert machines.read_counts() == [1, 2]
    assert not find_warnings(caplog)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_log_of_a_store_without_a_changelog_is_refused(
    tmp_path: Path, guarantee: str, damage: str
) -> None:
    machines = Machines(tmp_path, guarantee)
    machines.count("a", "b")
    # The databases of a worker that is killed are as those of an open one.
    disk = RocksDisk(machines.find_store())
    disk.write_changes({b"x": b"y"}, StoreCheckpoint(0, "", first_commit=1, last_commit=1 << 50))
    shutil.copytree(tmp_path / "one", tmp_path / "killed")
    disk.close()
    (log_file,) = [f for f in machines.find_store("killed").glob("*.log") if f.stat().st_size]
    content = bytearray(log_file.read_bytes())
    half = len(content) // 2
    if damage == "gone":
        log_file.unlink()
    elif damage == "cut":
        log_file.write_bytes(content[:half])
    else:
        content[half] ^= 0xFF
        log_file.write_bytes(content)
    for _ in range(2):  # what RocksDB leaves after the first opening is refused as well
        with pytest.raises(StreamsError, match=r"'c' has no changelog.*it has lost commits"):
            machines.count("c", on="killed")


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_older_offsets_than_a_store_without_a_changelog_are_refused(
    tmp_path: Path, guarantee: str
) -> None:
    machines = Machines(tmp_path, guarantee)
    machines.count("a")
    older = machines.read_metadata()
    machines.count("b", "c")
    machines.replace_metadata(older)
    with pytest.raises(PositionRefused, match=r"offsets of group 'a' are older than its state"):
        machines.count("d")


def test_offsets_and_stores_without_numbers_are_taken_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machines = Machines(tmp_path)
    machines.count("a", metadata_bytes_max=60)
    assert read_store_commits("c", [decode_metadata(machines.read_metadata())]) == StoreCommits()
    machines.count("b")
    assert machines.read_counts() == [1, 2]
    machines.replace_metadata(encode_metadata({}))
    machines.count("c")
    assert machines.read_counts() == [1, 2, 3]
    assert not find_warnings(caplog)


def test_a_store_whose_checkpoint_names_no_commit_is_followed_from_its_next_commit_on() -> None:
    kept = create_kept_store(checkpoint=StoreCheckpoint(0, "", 5))
    commits = UnloggedCommits("0_0", {"c": kept})
    commits.refuse_differing_stores("a", [decode_metadata(encode_metadata({}))])
    first = commits.prepare_commit(70, ["c"])
    assert list(first.values()) == [1, 70, 0]
    # A crash before the store had it leaves it as it was; a later one is refused.
    after = [decode_metadata(encode_metadata({}, entries=first))]
    UnloggedCommits("0_0", {"c": kept}).refuse_differing_stores("a", after)
    later = StoreCommits(1, 90, held=70).to_entries("c")
    with pytest.raises(PositionRefused):
        commits.refuse_differing_stores("a", [decode_metadata(encode_metadata({}, entries=later))])


def test_a_commit_that_has_not_written_a_store_names_the_one_that_did() -> None:
    kept = create_kept_store()
    commits = UnloggedCommits("0_0", {"c": kept})
    commits.refuse_differing_stores("a", [])
    assert commits.prepare_commit(6, []) == {}
    assert list(commits.prepare_commit(7, ["c"]).values()) == [7, 7, 0]
    assert commits.create_checkpoint("c", 5) == StoreCheckpoint(
        0, "", 5, first_commit=7, last_commit=7
    )
    commits.note_stored("c")
    assert list(commits.prepare_commit(8, []).values()) == [7, 7, 7]
    assert commits.create_checkpoint("c", 6).last_commit == 7
    commits.note_stored("c")
    assert list(commits.prepare_commit(9, ["c"]).values()) == [7, 9, 7]


def create_kept_store(*, checkpoint: StoreCheckpoint | None = None) -> KeptStore:
    """Return a store on a disk that some commit may have written."""
    disk = MemoryDisk()
    if checkpoint is not None:
        disk.write_changes({b"k": b"v"}, checkpoint)
    store = open_store(
        StoreSpec(name="c", key=serdes.string, value=serdes.string, logged=False), disk
    )
    return KeptStore(store, Path("here"), Path("aside"), lambda path: None)


def read_count(path: Path) -> int:
    """Return the count of the key k in a store that nobody has open."""
    disk = RocksDisk(path)
    ((_, stored),) = disk.range(None, None)
    disk.close()
    return int.from_bytes(stored[8:], "big")


def find_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
