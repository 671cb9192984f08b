"""Test that a broker's process leaves the interpreter's settings as they were."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from coordinator import broker_process
from coordinator.config import BrokerConfig


class FakeBroker:
    """Stands in for a broker that is told to stop at once, and can't."""

    host, port, failure = "127.0.0.1", 0, None

    async def start(self) -> None:
        pass

    def request_stop(self) -> None:
        pass

    async def wait_for_stop_request(self) -> None:
        pass

    async def stop(self) -> None:
        raise OSError("the disk is gone")


def test_the_switch_interval_is_restored_also_after_a_broker_that_cannot_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_process, "Broker", lambda config, clock, faults: FakeBroker())
    before_s = sys.getswitchinterval()
    intervals_s = []
    try:
        with pytest.raises(OSError, match="the disk is gone"):
            broker_process.run_broker(
                BrokerConfig(data_dir=tmp_path),
                lambda host, port: intervals_s.append(sys.getswitchinterval()),
            )
        assert intervals_s[0] < before_s
        assert sys.getswitchinterval() == before_s
    finally:
        sys.setswitchinterval(before_s)
        gc.unfreeze()
