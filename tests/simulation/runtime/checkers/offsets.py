"""Check that a task's offsets and changelogs are committed as one cut (decision 9).

A transaction that wrote to a task's changelogs commits offsets of that task, which never go back;
the positions in their metadata and the offsets are one cut, and all partitions that a task reads
name the same one.

Of each commit that the group has taken: the changelog up to the position that it names, replayed,
is what the inputs up to the offset make. That is looked at where one sub-topology does it all.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import orjson

from streams.runtime.offsets.offset_metadata import decode_metadata
from tests.conformance.batches import decode
from tests.simulation.network import Request
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import CHANGELOG, STORE, TICK, changelog_of

PRODUCE, END_TXN, TXN_OFFSET_COMMIT = 0, 26, 28
Identity = tuple[int, int]  # producer id and epoch
Task = tuple[int, int]  # sub-topology and partition


class Cut(NamedTuple):
    """Represents the committed offsets of a task by topic, and each changelog's position."""

    offsets: dict[str, int]
    positions: dict[str, int]


class Offsets(RuntimeChecker):
    name: ClassVar[str] = "offsets"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._written: dict[Identity, set[Task]] = {}  # to changelogs
        self._sent: dict[Identity, set[Task]] = {}  # offsets
        self._cuts: dict[Task, list[Cut]] = {}
        self._subs = {sub.number: sub for sub in self.world.topology().subtopologies}
        self._logged = {
            sub.number: [s.name for s in sub.stores if s.logged and s.source_topic is None]
            for sub in self._subs.values()
        }
        self._readers = {topic: sub.number for sub in self._subs.values() for topic in sub.sources}
        self._writers = {
            changelog_of(name): number for number, names in self._logged.items() for name in names
        }

    def handle_response(self, request: Request, response: Any) -> None:
        given = request.given
        match request.api_key:
            case api if api == PRODUCE and given["transactional_id"] is not None:
                self._produced(given, response)
            case api if api == TXN_OFFSET_COMMIT:
                codes = {p.error_code for topic in response.topics for p in topic.partitions}
                if codes == {0}:
                    tasks = {
                        (self._readers[topic["name"]], p["partition_index"])
                        for topic in given["topics"]
                        for p in topic["partitions"]
                    }
                    self._sent.setdefault(_identity(given), set()).update(tasks)
            case api if api == END_TXN:
                self._ended(given, response)

    def _produced(self, given: dict[str, Any], response: Any) -> None:
        for topic, answer in zip(given["topic_data"], response.responses, strict=True):
            for part, found in zip(
                topic["partition_data"], answer.partition_responses, strict=True
            ):
                if topic["name"] in self._writers and found.error_code == 0:
                    [batch] = decode(part["records"])
                    identity = batch.producer_id, batch.producer_epoch
                    task = self._writers[topic["name"]], part["index"]
                    self._written.setdefault(identity, set()).add(task)

    def _ended(self, given: dict[str, Any], response: Any) -> None:
        if response.error_code != 0:
            return
        name, identity = given["transactional_id"], _identity(given)
        written, sent = self._written.pop(identity, set()), self._sent.pop(identity, set())
        if given["committed"] and not written <= sent:
            self.violated(
                f"{name} commits what it wrote to changelogs of tasks {sorted(written)}, with "
                f"offsets of {sorted(sent)} only"
            )

    def handle_action(self) -> None:
        if not self.world.runtime.is_exactly_once:
            return
        cuts: dict[Task, Cut] = {}
        for place in self.world.truths:
            if place[0] not in self._readers:
                continue
            offset, metadata = self.world.committed_offset(*place)
            if offset < 0:
                continue
            number = self._readers[place[0]]
            found = decode_metadata(metadata.removesuffix("\0"))
            positions = {
                store: -1 if (position := found.position_of_store(store)) is None else position
                for store in self._logged[number]
            }
            cut = cuts.setdefault((number, place[1]), Cut({}, positions))
            if cut.positions != positions:
                self.violated(
                    f"{place} names {positions}, another partition of its task {cut.positions}"
                )
            cut.offsets[place[0]] = offset
        for task, cut in cuts.items():
            self._note(task, cut)

    def _note(self, task: Task, cut: Cut) -> None:
        noted = self._cuts.setdefault(task, [])
        if noted and noted[-1] == cut:
            return
        if noted and (
            _goes_back(noted[-1].offsets, cut.offsets)
            or _goes_back(noted[-1].positions, cut.positions)
        ):
            self.violated(f"task {task} goes back from {noted[-1]} to {cut}")
        noted.append(cut)

    def check_at_rest(self) -> None:
        if self.world.runtime.kind in ("collect", "count", "tick", "merged", "lines"):
            for task, cuts in self._cuts.items():
                if STORE in self._logged[task[0]]:
                    for cut in cuts:
                        self._check(task[1], cut)

    def _check(self, number: int, cut: Cut) -> None:
        counts = self.world.runtime.kind == "count"
        given: dict[bytes, list[str]] = {}
        for topic, offset in sorted(cut.offsets.items()):
            for entry in self.world.truths[topic, number].committed(offset):
                given.setdefault(entry.key or b"", []).append(entry.value.decode())
        wanted = {key: len(values) if counts else values for key, values in given.items()}
        replayed: dict[bytes, Any] = {}
        position = cut.positions[STORE]
        for entry in self.world.truths[CHANGELOG, number].committed(position):
            if (entry.key or b"").startswith(TICK.encode()):
                continue
            if counts:
                replayed[entry.key or b""] = int.from_bytes(entry.value, "big")
                continue
            seen: list[str] = orjson.loads(entry.value)
            # Of several inputs the order is that of their times.
            replayed[entry.key or b""] = sorted(seen, key=_input) if len(cut.offsets) > 1 else seen
        if replayed != wanted:
            lengths = {k: (wanted.get(k), replayed.get(k)) for k in given}
            self.violated(
                f"partition {number} is committed to {cut}: inputs and replayed "
                f"values by key: {str(lengths)[:300]}"
            )


def _goes_back(before: dict[str, int], now: dict[str, int]) -> bool:
    return any(now.get(name, -1) < at for name, at in before.items())


def _input(value: str) -> str:
    """Return the topic that a value of `merged` came from."""
    return value.partition(" ")[0]


def _identity(given: dict[str, Any]) -> Identity:
    return given["producer_id"], given["producer_epoch"]
