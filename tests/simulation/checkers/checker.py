"""What a checker may listen to. Each raises `Violation` under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from tests.simulation.network import Request
from tests.simulation.world import Violation

if TYPE_CHECKING:
    from tests.simulation.world import World


class Checker:
    """Does nothing at all; a checker overrides what it needs."""

    name: ClassVar[str]

    def __init__(self, world: World) -> None:
        self.world = world

    def asked(self, request: Request) -> None:
        """A request has reached the broker."""

    def answered(self, request: Request, response: Any) -> None:
        """It took effect, and this is the answer (which the client may never get)."""

    def acted(self) -> None:
        """The broker has done something: a request, or what a timer told it."""

    def crashed(self) -> None:
        """The broker is gone; `world.broker` is still as it was then."""

    def loaded(self) -> None:
        """A broker has loaded what is on the disk."""

    def looked_at(self) -> None:
        """Time for a look that is too dear to take after every request."""

    def ended(self) -> None:
        """Everything has come to rest: no fault, no client, no open transaction."""

    def violated(self, message: str) -> NoReturn:
        raise Violation(self.name, message)
