"""Check that a fenced producer never succeeds.

A producer is fenced when its transactional id has a newer owner, or the coordinator has aborted its
transaction on its own.
"""

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
Place = tuple[str, int]


class Fenced(Checker):
    name: ClassVar[str] = "fenced"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._owners: dict[str, Owner] = {}
        self._new_owners: set[Owner] = set()  # since the broker acted last
        # Producer ids with their last epoch that is no more: for the coordinator, and for each
        # partition, which learns it by the marker.
        self._dethroned: dict[tuple[Place | None, int], int] = {}
        self._aborting: set[Owner] = set()
        self._markers: dict[Place, int] = {}

    def handle_request(self, request: Request) -> None:
        given = request.given
        if request.api_key == END_TXN and not given["committed"]:
            self._aborting.add((given["producer_id"], given["producer_epoch"]))

    def handle_response(self, request: Request, response: Any) -> None:
        if request.api_key == INIT_PRODUCER_ID:
            self._initialised(request, response)
            return
        for transactional_id, owner, place in _succeeded(request, response):
            if request.api_key == END_TXN and request.version >= 5:
                self._ended(request, response, transactional_id, owner)
            else:
                self._check(request, transactional_id, owner, place)
            if request.api_key == ADD_PARTITIONS:
                self._aborting.discard(owner)  # of the transaction before

    def _ended(self, request: Request, response: Any, transactional_id: str, owner: Owner) -> None:
        """Move the owner to the epoch that EndTxn (v2) returns, and accept a retry."""
        after = response.producer_id, response.producer_epoch
        if after != self._owners.get(transactional_id):
            if request.given["committed"] or self._dethroned.get((None, owner[0])) != owner[1]:
                self._check(request, transactional_id, owner, None)
            self._new_owners.add(after)
            self._owners[transactional_id] = after

    def _check(
        self, request: Request, transactional_id: str, owner: Owner, place: Place | None
    ) -> None:
        newest = self._owners.get(transactional_id)
        what = f"{request.client_id}: API {request.api_key} of {transactional_id} as {owner}"
        if newest is not None and newest != owner:
            self.violated(f"{what} succeeds, but the owner is {newest}")
        if owner[1] <= self._dethroned.get((place, owner[0]), -1):
            self.violated(f"{what} succeeds after the coordinator has aborted its transaction")

    def handle_action(self) -> None:
        """Find the markers of aborts that no owner had requested."""
        owners = dict(self._owners.values())
        for place, truth in self.world.truths.items():
            for marker in truth.markers[self._markers.get(place, 0) :]:
                producer_id = marker.producer_id
                epoch = owners.get(producer_id, -1)
                # The marker of v2 is one epoch up. A new owner has the transaction of the one
                # before aborted, and may get its epoch.
                asked = (
                    (producer_id, marker.epoch) in self._aborting
                    or (producer_id, marker.epoch - 1) in self._aborting
                    or (producer_id, epoch) in self._new_owners
                )
                if not marker.committed and not asked and marker.epoch >= epoch:
                    self._dethroned[place, producer_id] = epoch
                    self._dethroned[None, producer_id] = epoch
            self._markers[place] = len(truth.markers)
        self._new_owners.clear()

    def handle_load(self) -> None:
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


def _succeeded(request: Request, response: Any) -> Iterator[tuple[str, Owner, Place | None]]:
    """Yield each success of a transactional producer, its owner, and the partition of a write."""
    given = request.given
    match request.api_key:
        case api if api == PRODUCE:
            [topic] = response.responses
            [found] = topic.partition_responses
            if given["transactional_id"] is not None and found.error_code == 0:
                yield given["transactional_id"], _written_by(given), (topic.name, found.index)
        case api if api == ADD_PARTITIONS:
            [topic] = response.results_by_topic_v3_and_below
            if topic.results_by_partition[0].partition_error_code == 0:
                identity = {
                    name: given[f"v3_and_below_{name}"]
                    for name in ("transactional_id", "producer_id", "producer_epoch")
                }
                yield *_identity(identity), None
        case api if api in (ADD_OFFSETS, END_TXN):
            if response.error_code == 0:
                yield *_identity(given), None
        case api if api == TXN_OFFSET_COMMIT:
            if response.topics[0].partitions[0].error_code == 0:
                yield *_identity(given), None


def _identity(given: dict[str, Any]) -> tuple[str, Owner]:
    return given["transactional_id"], (given["producer_id"], given["producer_epoch"])


def _written_by(given: dict[str, Any]) -> Owner:
    """Return the owner that the producer id and epoch of a batch name."""
    records: bytes = given["topic_data"][0]["partition_data"][0]["records"]
    return (
        int.from_bytes(records[43:51], "big", signed=True),
        int.from_bytes(records[51:53], "big", signed=True),
    )
