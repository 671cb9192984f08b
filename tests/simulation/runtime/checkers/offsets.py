"""A transaction that wrote to a task's changelog commits offsets of that task (decision 9), which
never go back; the positions in their metadata and the offsets are one cut.

Of each commit that the group has taken: the changelog up to the position that it names, replayed,
is what the inputs up to the offset make. That is looked at where one sub-topology does it all.
"""

from __future__ import annotations

from typing import Any, ClassVar

import orjson

from streams.runtime.offsets import decode_metadata
from tests.conformance.batches import decode
from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import CHANGELOG, INPUT, REPARTITION, STORE, TICK

PRODUCE, END_TXN, TXN_OFFSET_COMMIT = 0, 26, 28
Identity = tuple[int, int]  # producer id and epoch


class Offsets(RuntimeChecker):
    name: ClassVar[str] = "offsets"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._written: dict[Identity, set[int]] = {}  # partitions of the changelog
        self._sent: dict[Identity, set[int]] = {}  # partitions with offsets
        self._cuts: dict[tuple[str, int], list[tuple[int, int]]] = {}  # offset, changelog position

    def answered(self, request: Request, response: Any) -> None:
        given = request.given
        match request.api_key:
            case api if api == PRODUCE and given["transactional_id"] is not None:
                self._produced(given, response)
            case api if api == TXN_OFFSET_COMMIT:
                codes = {p.error_code for topic in response.topics for p in topic.partitions}
                if codes == {0}:
                    numbers = {
                        p["partition_index"]
                        for topic in given["topics"]
                        for p in topic["partitions"]
                        if topic["name"] == self._source
                    }
                    self._sent.setdefault(_identity(given), set()).update(numbers)
            case api if api == END_TXN:
                self._ended(given, response)

    @property
    def _source(self) -> str:
        """The topic that the task with the store reads."""
        return REPARTITION if self.world.runtime.kind == "regroup" else INPUT

    def _produced(self, given: dict[str, Any], response: Any) -> None:
        for topic, answer in zip(given["topic_data"], response.responses, strict=True):
            for part, found in zip(
                topic["partition_data"], answer.partition_responses, strict=True
            ):
                if topic["name"] == CHANGELOG and found.error_code == 0:
                    [batch] = decode(part["records"])
                    identity = batch.producer_id, batch.producer_epoch
                    self._written.setdefault(identity, set()).add(part["index"])

    def _ended(self, given: dict[str, Any], response: Any) -> None:
        if response.error_code != 0:
            return
        name, identity = given["transactional_id"], _identity(given)
        written, sent = self._written.pop(identity, set()), self._sent.pop(identity, set())
        if given["committed"] and not written <= sent:
            self.violated(
                f"{name} commits what it wrote to {CHANGELOG} {sorted(written)}, with offsets of "
                f"{sorted(sent)} only"
            )

    def acted(self) -> None:
        if not self.world.runtime.is_exactly_once:
            return
        for place in self.world.truths:
            if place[0] not in (INPUT, REPARTITION):
                continue
            offset, metadata = self.world.committed_offset(*place)
            if offset < 0:
                continue
            positions = decode_metadata(metadata.removesuffix("\0"))
            position = positions.position_of(STORE)
            cut = offset, -1 if position is None else position
            cuts = self._cuts.setdefault(place, [])
            if not cuts or cuts[-1] != cut:
                if cuts and (cut[0] < cuts[-1][0] or cut[1] < cuts[-1][1]):
                    self.violated(f"{place} goes back from {cuts[-1]} to {cut}")
                cuts.append(cut)

    def ended(self) -> None:
        if self.world.runtime.kind in ("collect", "count", "tick"):
            for place, cuts in self._cuts.items():
                for offset, position in cuts:
                    self._check(place, offset, position)

    def _check(self, place: tuple[str, int], offset: int, position: int) -> None:
        counts = self.world.runtime.kind == "count"
        given: dict[bytes, list[str]] = {}
        for entry in self.world.truths[place].committed(offset):
            given.setdefault(entry.key or b"", []).append(entry.value.decode())
        wanted = {key: len(values) if counts else values for key, values in given.items()}
        replayed: dict[bytes, Any] = {}
        for entry in self.world.truths[CHANGELOG, place[1]].committed(position):
            if (entry.key or b"").startswith(TICK.encode()):
                continue
            value = int.from_bytes(entry.value, "big") if counts else orjson.loads(entry.value)
            replayed[entry.key or b""] = value
        if replayed != wanted:
            lengths = {k: (wanted.get(k), replayed.get(k)) for k in given}
            self.violated(
                f"{place} is committed to {offset} with position {position}: inputs and replayed "
                f"values by key: {str(lengths)[:300]}"
            )


def _identity(given: dict[str, Any]) -> Identity:
    return given["producer_id"], given["producer_epoch"]
