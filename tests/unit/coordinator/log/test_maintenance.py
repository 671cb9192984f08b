"""Test that periodic maintenance goes on with all other logs when one of them fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.log.disk import SystemDisk
from coordinator.log.maintenance import LogMaintenance
from tests.unit.coordinator.api.client import Client, batch
from tests.unit.coordinator.fakes import FakeClock
from tests.unit.coordinator.log.logs import BadSector, host, partition, produced

RETENTION_MS, CHECKPOINT_MS = 500, 700
SIZE = produced().size


def refuse() -> None:
    raise ValueError("nobody thought of this")


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_log_that_fails_keeps_no_other_one_from_being_shortened_and_saved(
    tmp_path: Path, rounds: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    bad, good = made = [
        partition(tmp_path / name, clock=clock, segment_bytes=SIZE, retention_bytes=SIZE)
        for name in ("bad", "good")
    ]
    for log in made:
        for _ in range(2):
            log.append_produced(produced(timestamp_ms=clock.now_ms()))
    bad.checkpoints.save_checkpoint_in_background = refuse  # type: ignore[method-assign]
    upkeep = LogMaintenance(lambda: made, host(clock=clock))
    upkeep.start_timers(RETENTION_MS, CHECKPOINT_MS)
    for _ in range(rounds):
        clock.advance(CHECKPOINT_MS)
        assert not good.checkpoints.has_unsaved
        assert len(list(good.list_segment_files())) == 1
        for _ in range(2):
            good.append_produced(produced(timestamp_ms=clock.now_ms()))
    assert "nobody thought of this" in caplog.text
    upkeep.cancel_timers()


class Refusing(SystemDisk):
    """Stands in for a disk that raises an unforeseen error when it writes one file."""

    refused: Path | None = None

    def replace_file(self, path: Path, content: bytes) -> None:
        if path == self.refused:
            refuse()
        super().replace_file(path, content)


def test_a_log_that_can_not_be_closed_well_keeps_no_other_one_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Refusing()
    client = Client(tmp_path, disk=disk)
    for topic in ("a", "b"):
        client.create(topic)
        client.produce(topic, batch(b"v"))
    disk.refused = tmp_path / "a-0" / "checkpoint"
    client.broker.close()
    assert (tmp_path / "b-0" / "checkpoint").exists()
    assert not (tmp_path / "a-0" / "checkpoint").exists()
    assert "nobody thought of this" in caplog.text
    again = Client(tmp_path)
    assert again.partition("a").end_offset == 1
    again.broker.close()


def test_a_log_that_can_not_be_read_at_start_is_not_served_and_the_others_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(tmp_path)
    for topic in ("a", "b"):
        client.create(topic)
        client.produce(topic, batch(b"v"))
    client.broker.close()
    (tmp_path / "a-0" / "checkpoint").unlink()
    client = Client(tmp_path, disk=BadSector("a-0"))
    assert client.produce("a", batch(b"w")).error_code == 56
    assert client.produce("b", batch(b"w")).base_offset == 1
    assert "a-0 is not served until the next start" in caplog.text
    client.broker.close()
    client = Client(tmp_path)
    assert client.produce("a", batch(b"w")).base_offset == 1
    client.broker.close()
