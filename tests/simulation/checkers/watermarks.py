"""Check that the high watermark and the last stable offset never go back, for any client.

The last stable offset is the first offset of the oldest open transaction.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.simulation.checkers.checker import Checker
from tests.simulation.network import Request

FETCH = 1
Place = tuple[str, int]


class Watermarks(Checker):
    name: ClassVar[str] = "watermarks"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._high: dict[Place, int] = {}
        self._stable: dict[Place, int] = {}

    def handle_action(self) -> None:
        for place, partition in self.world.partitions():
            self._check(place, partition.end_offset, partition.last_stable_offset)
            truth = self.world.truths[place].stable_offset
            if partition.last_stable_offset != truth:
                self.violated(f"{place}: stable to {partition.last_stable_offset}, not {truth}")

    def handle_load(self) -> None:
        self.handle_action()

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key != FETCH:
            return
        for topic in response.responses:
            for found in topic.partitions:
                if found.error_code == 0:
                    place = (topic.topic, found.partition_index)
                    self._check(place, found.high_watermark, found.last_stable_offset)

    def _check(self, place: Place, high: int, stable: int) -> None:
        if high < self._high.get(place, 0):
            self.violated(f"{place}: the high watermark falls from {self._high[place]} to {high}")
        if stable < self._stable.get(place, 0):
            self.violated(
                f"{place}: the stable offset falls from {self._stable[place]} to {stable}"
            )
        if stable > high:
            self.violated(f"{place}: stable to {stable}, but written to {high}")
        self._high[place], self._stable[place] = high, stable
