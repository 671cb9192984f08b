"""Test that what can't be aborted of departed threads is left to time out, and raises nothing."""

from __future__ import annotations

from typing import Any

import pytest

from streams.membership.connection import ConnectionLost
from streams.membership.departed_producers import abort_departed_transactions


class LostConnection:
    """Loses each request."""

    def negotiate_version(self, api_key: int, version_max: int) -> int:
        return version_max

    def send_request(self, request: Any) -> Any:
        raise ConnectionLost("cut off")

    def close(self) -> None:
        pass


def refuse_connection(address: tuple[str, int] | None) -> Any:
    raise ConnectionLost("refused")


@pytest.mark.parametrize("open_connection", [lambda address: LostConnection(), refuse_connection])
def test_a_connection_that_is_lost_leaves_transactions_to_time_out(
    open_connection: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert abort_departed_transactions(open_connection, "app", ()) == []
    assert "open transactions of app are left to time out" in caplog.text
