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

    def asked(self, request: Request) -> None:
        """Handle a request that has reached the broker."""

    def answered(self, request: Request, response: Any) -> None:
        """Handle a request that took effect, with a response that the client may never get."""

    def acted(self) -> None:
        """Handle the end of an action of the broker: a request or a timer."""

    def crashed(self) -> None:
        """Handle the crash of the broker; `world.broker` still has its last state."""

    def loaded(self) -> None:
        """Handle the start of a broker that has loaded what is on the disk."""

    def looked_at(self) -> None:
        """Run checks that are too expensive after every request."""

    def ended(self) -> None:
        """Run checks when all is at rest, without faults, clients or open transactions."""

    def violated(self, message: str) -> NoReturn:
        raise Violation(self.name, message)
