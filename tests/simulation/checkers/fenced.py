"""A fenced producer never succeeds: neither one whose transactional id has a newer owner, nor one
whose transaction the coordinator has aborted over its head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from tests.simulation.checkers.checker import Checker
from tests.simulation.network import Request

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT = (
    0,
    22,
    24,
    25,
    26,
    28,
)
Owner = tuple[int, int]  # producer id and epoch


class Fenced(Checker):
    name: ClassVar[str] = "fenced"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: dict[str, Owner] = {}
        self._new_owners: set[Owner] = set()  # since the broker acted last
        self._dethroned: dict[int, int] = {}  # producer id -> its last epoch that is no more
        self._aborting: set[Owner] = set()
        self._markers: dict[tuple[str, int], int] = {}

    def asked(self, request: Request) -> None:
        given = request.given
        if request.api_key == END_TXN and not given["committed"]:
            self._aborting.add((given["producer_id"], given["producer_epoch"]))

    def answered(self, request: Request, response: Any) -> None:
        if request.api_key == INIT_PRODUCER_ID:
            self._initialised(request, response)
            return
        for transactional_id, owner in _succeeded(request, response):
            newest = self._owners.get(transactional_id)
            if newest is not None and newest != owner:
                self.violated(
                    f"{request.client_id}: API {request.api_key} of {transactional_id} as {owner} "
                    f"succeeds, but the owner is {newest}"
                )
            if owner[1] <= self._dethroned.get(owner[0], -1):
                self.violated(
                    f"{request.client_id}: API {request.api_key} of {transactional_id} as {owner} "
                    "succeeds after the coordinator has aborted its transaction"
                )

    def acted(self) -> None:
        """Find the markers of aborts that no owner had asked for."""
        owners = dict(self._owners.values())
        for place, truth in self.world.truths.items():
            for marker in truth.markers[self._markers.get(place, 0) :]:
                epoch = owners.get(marker.producer_id, -1)
                owner = marker.producer_id, epoch
                # A new owner has the transaction of the one before aborted, and may get its epoch.
                asked = owner in self._aborting or owner in self._new_owners
                if not marker.committed and not asked and marker.epoch >= epoch:
                    self._dethroned[marker.producer_id] = epoch
            self._markers[place] = len(truth.markers)
        self._new_owners.clear()

    def loaded(self) -> None:
        self._markers.clear()
        for place, truth in self.world.truths.items():
            self._markers[place] = len(truth.markers)

    def _initialised(self, request: Request, response: Any) -> None:
        transactional_id = request.given["transactional_id"]
        if transactional_id is None or response.error_code != 0:
            return
        owner = response.producer_id, response.producer_epoch
        before = self._owners.get(transactional_id)
        again = request.given.get("producer_epoch", -1) >= 0 and owner == before
        if before is not None and before[0] == owner[0] and owner[1] <= before[1] and not again:
            self.violated(
                f"{transactional_id}: {before} is followed by {owner}, which fences no one"
            )
        self._owners[transactional_id] = owner
        self._new_owners.add(owner)


def _succeeded(request: Request, response: Any) -> Iterator[tuple[str, Owner]]:
    """What a transactional producer was granted, and as whom."""
    given = request.given
    match request.api_key:
        case api if api == PRODUCE:
            found = response.responses[0].partition_responses[0]
            if given["transactional_id"] is not None and found.error_code == 0:
                yield given["transactional_id"], _written_by(given)
        case api if api == ADD_PARTITIONS:
            [topic] = response.results_by_topic_v3_and_below
            if topic.results_by_partition[0].partition_error_code == 0:
                yield (
                    given["v3_and_below_transactional_id"],
                    (given["v3_and_below_producer_id"], given["v3_and_below_producer_epoch"]),
                )
        case api if api in (ADD_OFFSETS, END_TXN):
            if response.error_code == 0:
                yield _identity(given)
        case api if api == TXN_OFFSET_COMMIT:
            if response.topics[0].partitions[0].error_code == 0:
                yield _identity(given)


def _identity(given: dict[str, Any]) -> tuple[str, Owner]:
    return given["transactional_id"], (given["producer_id"], given["producer_epoch"])


def _written_by(given: dict[str, Any]) -> Owner:
    """Producer id and epoch stand in the batch."""
    records: bytes = given["topic_data"][0]["partition_data"][0]["records"]
    return (
        int.from_bytes(records[43:51], "big", signed=True),
        int.from_bytes(records[51:53], "big", signed=True),
    )
