"""Check that a worker fences its predecessor before it reads committed offsets (decision 10).

The transactional ids of its tasks are its own by then, in this life and since its last recovery.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import APPLICATION

OFFSET_FETCH, INIT_PRODUCER_ID = 9, 22


class Fenced(RuntimeChecker):
    name: ClassVar[str] = "fenced"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: set[str] = set()  # lives that have made a producer

    def handle_response(self, request: Request, response: Any) -> None:
        life = request.client_id.split()[0]
        if request.api_key == INIT_PRODUCER_ID and response.error_code == 0:
            self._owners.add(life)
        elif (
            request.api_key == OFFSET_FETCH
            and self.world.runtime.is_exactly_once
            and str(request.given.group_id) == APPLICATION
            and life not in self._owners
        ):
            self.violated(f"{life} reads the committed offsets, and has fenced nobody")
