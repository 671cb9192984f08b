"""End a call that waits for a group's coordinator which is elsewhere by now.

librdkafka remembers the coordinator to which a producer sends offsets. When that broker is lost, it
is removed from the metadata a few seconds later, and librdkafka 2.16 then never asks again where
the coordinator is: `send_offsets_to_transaction` returns at its time-out or later (its issues 5456
and 5511). A new producer asks. Whether the coordinator has moved the worker knows by itself, since
its heartbeats go to it, over a connection of its own. Whether the former one was lost, or moved in
order, a connection to it tells.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing

from streams.common.addresses import Address, format_address
from streams.errors import CoordinatorMoved
from streams.runtime.clients.refusable_call import CHECK_INTERVAL_S

GetCoordinatorAddress = Callable[[], Address | None]
"""Returns where a group's coordinator is, as it answers at present; None if that is not known."""

_MOVED_S = 2.0
"""For how long a call goes on after the coordinator is known to be elsewhere, if its former broker
listens: one that moves in order tells it, and librdkafka goes on with the new one."""
_CONNECT_S = 0.5
"""How long a connection to the former broker is waited for, in seconds."""


def is_listening(address: Address) -> bool:
    """Return whether something takes connections at an address, within half a second."""
    try:
        with closing(socket.create_connection(address, _CONNECT_S)):
            return True
    except OSError:
        return False


class MovedCoordinator:
    """Compares where the coordinator is with where it was when a producer last reached it.

    So a producer is given up once for each move, however slow the new coordinator is.
    """

    def __init__(
        self,
        get_address: GetCoordinatorAddress,
        is_listening: Callable[[Address], bool] = is_listening,
    ) -> None:
        self._get_address = get_address
        self._is_listening = is_listening
        self._reached_address = get_address()

    def note_reached(self) -> None:
        """Note that the producer has reached the coordinator where it is now."""
        self._reached_address = self._get_address() or self._reached_address

    def wrap_check_to_raise_if_moved(self, check: Callable[[], None]) -> Callable[[], None]:
        """Return a check for one call: it runs `check`, and raises if the coordinator has moved.

        Raises: CoordinatorMoved once the coordinator has answered elsewhere, at once if nothing
        listens where it was, else after two seconds.
        """
        moved_count = 0

        def check_call() -> None:
            nonlocal moved_count
            check()
            address = self._get_address()
            former = self._reached_address
            if address is None or former is None or address == former:
                moved_count = 0
                return
            moved_count += 1
            if moved_count * CHECK_INTERVAL_S >= _MOVED_S or not self._is_listening(former):
                raise CoordinatorMoved(
                    f"the group's coordinator has moved to {format_address(address)}, and the "
                    "producer does not ask for it again"
                )

        return check_call


def find_no_address() -> Address | None:
    """Return None: nothing is known of where the coordinator is."""
    return None
