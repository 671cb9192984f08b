"""Check that each committed record is in one ledger entry, and that cuts agree with the ledger.

The entry is of the record's own transaction; cuts of the application are taken whenever its offsets
have changed.

A cut has the transactions that `Members` derives. They must be all that it had before and more;
what they wrote to the changelogs is what is committed below the positions that the offsets name;
and what their tasks had read of repartition topics was written by others of them.
"""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from coordinator.errors import Code
from streams.common.topic_partitions import Partition
from streams.ledger import LedgerTransaction, decode, ledger_topic
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.cuts.members import Members
from tests.simulation.runtime.checkers.checker import RuntimeChecker
from tests.simulation.runtime.topologies import APPLICATION

CUTS_MAX = 40
"""The number of a history's cuts that are checked, the last one included."""
Records = dict[Partition, set[int]]


class Ledger(RuntimeChecker):
    name: ClassVar[str] = "ledger"

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._is_off = not self.world.runtime.ledger
        self._topology = self.world.topology()
        self._cuts: list[Cut] = []

    def handle_action(self) -> None:
        if self._is_off:
            return
        cut = self._cut()
        if cut is not None and not (
            self._cuts
            and self._cuts[-1].offsets == cut.offsets
            and self._cuts[-1].stores == cut.stores
        ):
            self._cuts.append(cut)

    def _cut(self) -> Cut | None:
        """Take a cut as `read_cut` does; return None where an offset is pending."""
        places = [Partition(*place) for place in self.world.truths if place[0] in self._sources]
        found = self.world.broker.coordinators.groups.offsets.fetch_offsets(
            APPLICATION, [(*place, None) for place in places], require_stable=True
        )
        if any(each.code is not Code.NONE for each in found):
            return None
        offsets: dict[Partition, int] = {}
        positions: dict[str, dict[int, int]] = {}
        for place, each in zip(places, found, strict=True):
            offsets[place] = max(each.offset, 0)
            said = decode_metadata(each.metadata.removesuffix("\0"))
            for sub in self._topology.subtopologies:
                for spec in sub.stores if place.topic in sub.sources else ():
                    at = positions.setdefault(spec.name, {})
                    known = max(at.get(place.number, 0), said.position_of_store(spec.name) or 0)
                    at[place.number] = known
        stores = {
            name: StoreCut(self._topology.restore_topic_of(name), at)
            for name, at in positions.items()
        }
        return Cut(application_id=APPLICATION, taken_ms=0, offsets=offsets, stores=stores)

    @property
    def _sources(self) -> frozenset[str]:
        return self.world.sources

    def check_at_rest(self) -> None:
        if self._is_off:
            return
        ledger = self.world.truths[ledger_topic(APPLICATION), 0]
        entries = [(each, decode(each.value)) for each in ledger.committed(ledger.end_offset)]
        for record, entry in entries:
            if (record.producer_id, record.epoch) != (entry.producer_id, entry.producer_epoch):
                self.violated(f"the entry at {record.offset} names another producer: {entry}")
        self._check_records([entry for _, entry in entries])
        named = {
            each
            for _, entry in entries
            for inputs in entry.inputs.values()
            for each in inputs.items()
        }
        for cut in self._cuts:
            committed = {each for each in cut.offsets.items() if each[1] > 0}
            if missing := committed - named:
                self.violated(f"no entry names the committed offsets {sorted(missing)}")
        before: list[LedgerTransaction] = []
        for cut in self._sampled():
            now = [entry for _, entry in entries if Members(cut).includes_transaction(entry)]
            if lost := [entry for entry in before if entry not in now]:
                self.violated(f"the cut at {cut.offsets} has no longer {lost[:2]}")
            self._check_cut(cut, now)
            before = now
        # Timers write on: while the next transaction's offsets are pending no cut can be taken, and
        # the transaction before it may have had none.
        if len(before) != len(entries) and self._cut() is not None:
            out = [entry for _, entry in entries if entry not in before]
            self.violated(
                f"the last cut has {len(before)} of {len(entries)} entries; not {out[:2]}"
            )

    def _sampled(self) -> list[Cut]:
        random = Random(f"{self.world.seed} cuts")
        numbers = range(len(self._cuts) - 1)
        some = sorted(random.sample(numbers, min(CUTS_MAX, len(numbers)))) if self._cuts else []
        return [self._cuts[number] for number in some] + self._cuts[-1:]

    def _check_records(self, entries: list[LedgerTransaction]) -> None:
        """Check that each committed record is in one entry, which has only committed records."""
        written = self._written_by(entries)
        claims = sum(
            run.last - run.first + 1
            for entry in entries
            for runs in entry.written.values()
            for run in runs
        )
        if claims != sum(map(len, written.values())):
            self.violated("two entries name one record")
        for entry in entries:
            for place, runs in entry.written.items():
                truth = self.world.truths[place]
                for run in runs:
                    for offset in range(max(run.first, truth.start_offset), run.last + 1):
                        found = truth.by_offset.get(offset)
                        identity = entry.producer_id, entry.producer_epoch
                        if (
                            found is None
                            or not found.committed
                            or (found.producer_id, found.epoch) != identity
                        ):
                            self.violated(f"{place}@{offset} is {found}, and in {entry}")
        for place, named in self._committed().items():
            if missing := named - written.get(place, set()):
                self.violated(f"no entry has {place} at {sorted(missing)[:5]}")

    def _committed(self) -> Records:
        """Return what the application committed, except for the ledger itself."""
        fed = self._sources - self._topology.repartition_topics
        return {
            Partition(*place): {each.offset for each in truth.committed(truth.end_offset)}
            for place, truth in self.world.truths.items()
            if place[0] not in fed and place[0] != ledger_topic(APPLICATION)
        }

    @staticmethod
    def _written_by(entries: list[LedgerTransaction]) -> Records:
        found: Records = {}
        for entry in entries:
            for place, runs in entry.written.items():
                offsets = found.setdefault(place, set())
                for run in runs:
                    offsets.update(range(run.first, run.last + 1))
        return found

    def _check_cut(self, cut: Cut, members: list[LedgerTransaction]) -> None:
        written = self._written_by(members)
        for name, store in cut.stores.items():
            for number, position in store.positions.items():
                place = Partition(store.changelog, number)
                truth = self.world.truths.get(place)
                below = {each.offset for each in truth.committed(position)} if truth else set()
                there = written.get(place, set())
                if below != {each for each in there if truth and each >= truth.start_offset}:
                    self.violated(
                        f"at {cut.offsets} {name}[{number}] stands at {position}: below it and not "
                        f"in the cut {sorted(below - there)[:5]}; above it and in the cut "
                        f"{sorted(there - below)[:5]}"
                    )
        for place, offset in cut.offsets.items():
            if place.topic in self._topology.repartition_topics:
                read = {each.offset for each in self.world.truths[place].committed(offset)}
                if lost := read - written.get(place, set()):
                    self.violated(
                        f"the cut has read {place} at {sorted(lost)[:5]}, written by none"
                    )
