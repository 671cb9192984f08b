"""Test that a look-up of offsets ends after its own time-out where brokers don't answer."""

from __future__ import annotations

import socket

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.clients import Admin
from tests.processes import HANG_LIMIT_S, HOST


def test_ends_are_waited_for_as_long_as_the_caller_can_wait() -> None:
    with socket.create_server((HOST, 0)) as silent:
        address = f"{HOST}:{silent.getsockname()[1]}"
        admin = Admin({"bootstrap.servers": address}, address, HANG_LIMIT_S)
        with pytest.raises(OutcomeUnknown, match=r"no answer in 0\.2 s"):
            admin.fetch_latest_offsets([Partition("t", 0)], 0.2)
