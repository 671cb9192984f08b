"""Check that no producer id and epoch is handed out twice, not even after a crash.

The exception is an owner that retries with the epoch before (KIP-360).
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.checkers.checker import Checker
from tests.simulation.network import Request

INIT_PRODUCER_ID = 22


class ProducerIds(Checker):
    name: ClassVar[str] = "producer_ids"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._names: dict[int, str] = {}  # by producer id
        self._owners: dict[tuple[int, int], tuple[str, int]] = {}

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != INIT_PRODUCER_ID or response.error_code != 0:
            return
        producer_id, epoch = response.producer_id, response.producer_epoch
        name = request.given["transactional_id"] or f"{request.client_id} {len(self._owners)}"
        before = self._names.setdefault(producer_id, name)
        if before != name:
            self.violated(f"{producer_id} was {before}'s, and is given to {name}")
        owner = request.client_id, request.given.get("producer_epoch", -1)
        known = self._owners.setdefault((producer_id, epoch), owner)
        if known is not owner and (known != owner or owner[1] == -1):
            self.violated(f"epoch {epoch} of producer id {producer_id} is given again to {name}")
