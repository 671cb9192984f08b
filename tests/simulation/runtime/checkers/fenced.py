"""Check that a worker fences its predecessor before it reads committed offsets (decision 10).

The transactional ids of its tasks are its own by then, in this life. What it read before counts for
nothing: a standby task reads offsets too, and begins at none of them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import APPLICATION

OFFSET_FETCH, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT = 9, 22, 28


class Fenced(RuntimeChecker):
    name: ClassVar[str] = "fenced"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: set[str] = set()  # lives that have made a producer
        self._readers: set[str] = set()  # lives that have read offsets since

    def handle_response(self, request: Request, response: Any) -> None:
        life = request.client_id.split()[0]
        if request.api_key == INIT_PRODUCER_ID and response.error_code == 0:
            self._owners.add(life)
        elif request.api_key == OFFSET_FETCH and str(request.given.group_id) == APPLICATION:
            if life in self._owners:
                self._readers.add(life)
        elif (
            request.api_key == TXN_OFFSET_COMMIT
            and self.world.runtime.is_exactly_once
            and life not in self._readers
        ):
            self.violated(f"{life} commits offsets, and has fenced nobody before it read them")
