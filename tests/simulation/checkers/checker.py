"""Define the events that a checker gets; each checker raises `Violation` under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from tests.simulation.network import Request
from tests.simulation.world import Violation

if TYPE_CHECKING:
    from tests.simulation.world import World


class Checker:
    """Ignores all events; a checker overrides those that it needs."""

    name: ClassVar[str]

    def __init__(self, world: World) -> None:
        self.world = world

    def handle_request(self, request: Request) -> None:
        """Handle a request that has reached the broker."""

    def handle_response(self, request: Request, response: Any) -> None:
        """Handle a request that took effect, with a response that the client may never get."""

    def handle_action(self) -> None:
        """Handle the end of an action of the broker: a request or a timer."""

    def handle_crash(self) -> None:
        """Handle the crash of the broker; `world.broker` still has its last state."""

    def handle_load(self) -> None:
        """Handle the start of a broker that has loaded what is on the disk."""

    def run_expensive_checks(self) -> None:
        """Run checks that are too expensive after every request."""

    def check_at_rest(self) -> None:
        """Run checks when all is at rest, without faults, clients or open transactions."""

    def violated(self, message: str) -> NoReturn:
        raise Violation(self.name, message)
