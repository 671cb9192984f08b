"""Reconcile: whether the stream's answer is the batch answer, record by record, at one cut.

A cut is taken, the answer is computed again from the inputs up to it, by the user's own function or
by a plan derived from the topology, and each store and topic is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark import StorageLevel

from streams.embedded import bootstrap_address
from streams.errors import ConfigError, UserError
from streams.spark.books.accounts import Account, Kind
from streams.spark.books.asked import Expected, asked
from streams.spark.books.checking import check, let_go
from streams.spark.books.derived import Derived, derive
from streams.spark.books.found import Found, Place, chosen, places
from streams.spark.books.inputs import Inputs, Records, untold
from streams.spark.books.ledgers import Written, entries_in_cut
from streams.spark.books.report import Checked, Refused, Report
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.members import in_flight
from streams.spark.cuts.taking import read_cut
from streams.spark.environment import check_environment
from streams.spark.source.access import Access
from streams.topology.build import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streams.app import App

_POSITIONS = "topic STRING, partition INT, offset BIGINT, key BINARY"


def reconcile(
    spark: SparkSession,
    app: App,
    *,
    expected: Expected | None = None,
    cut: Cut | None = None,
    bootstrap_servers: str | None = None,
    kafka: Mapping[str, str] | None = None,
    accounts: Sequence[str] | None = None,
    tolerance: float = 0.0,
) -> Report:
    """Compare what `app` has computed with what its inputs say, as of `cut`, or of one that is
    taken now, while it runs on.

    `expected`: a function of the inputs (`Inputs`) that returns a DataFrame of `key` and `value`,
    or a dict of them by the names of stores and topics; by default the answer follows from the
    topology. `bootstrap_servers`, `kafka` (settings of librdkafka): by default those of the App.
    `accounts`: names of the stores and topics to be checked; by default all. `tolerance`: by how
    much floats of tables may differ.

    Raises ConfigError where nothing of what was asked for could be checked, and for workers of
    Spark that lack what they need.
    """
    check_environment(spark)
    topology = app.topology()
    servers = bootstrap_address(app.config) if bootstrap_servers is None else bootstrap_servers
    if cut is None:
        cut = read_cut(app, bootstrap_servers=servers, kafka=kafka)
    if cut.application_id != app.application_id:
        raise ConfigError(
            f"the cut is one of {cut.application_id!r}, and the application is "
            f"{app.application_id!r}"
        )
    access = Access(servers, dict(kafka or {}))
    books = _Books(spark, app, topology, access, cut, Records(spark, access))
    return books.report(expected, accounts, tolerance)


@dataclass(frozen=True, slots=True)
class _Books:
    """The application at the cut."""

    spark: SparkSession
    app: App
    topology: Topology
    access: Access
    cut: Cut
    records: Records

    def report(
        self, expected: Expected | None, names: Sequence[str] | None, tolerance: float
    ) -> Report:
        """Check what can be checked. Raises ConfigError where that is nothing."""
        there = places(self.topology)
        between = self._in_flight()
        count = None if between is None else between.count()
        refused: list[Refused] = []
        if expected is None:
            pairs = self._derived(there, names, refused)
        else:
            inputs = Inputs(self.topology, self.cut, self.records)
            pairs = self._decided(asked(expected, inputs, there, names), count, refused)
        checked = _named(self._checked(pairs, refused, tolerance))
        unchecked = _unchecked(chosen(there, names or ()), checked.values(), refused)
        if not checked:
            whys = "; ".join(f"{each.name}: {each.why}" for each in refused)
            raise ConfigError(f"nothing could be checked: {whys or 'there is nothing to check'}")
        if expected is not None:
            checked = self._with_origins(checked)
        return Report(
            application_id=self.app.application_id,
            cut=self.cut,
            spark=self.spark,
            accounts=checked,
            refused=tuple(refused),
            unchecked=unchecked,
            in_flight=between,
            in_flight_count=count,
            inputs=self._inputs(),
        )

    def _derived(
        self, there: list[Place], names: Sequence[str] | None, refused: list[Refused]
    ) -> list[tuple[Place, Account]]:
        """The accounts that follow from the topology, and why others of these names don't."""
        wanted = chosen(there, names) if names else there
        found = self._derivation()
        accounts = _by_name(found.accounts)
        open_in = {place.subtopology for place in wanted if _key(place) not in accounts}
        refused += [
            Refused(each.step, each.subtopology, each.why)
            for each in found.refused
            if not names or each.subtopology in open_in
        ]
        for place in wanted:
            if _key(place) not in accounts and (why := _reason(place, refused, named=bool(names))):
                refused.append(Refused(place.name, place.subtopology, why))
        return [(place, accounts[key]) for place in wanted if (key := _key(place)) in accounts]

    def _derivation(self) -> Derived:
        return derive(self.app, self.cut, self.records)

    def _decided(
        self,
        pairs: list[tuple[Place, Account]],
        between: int | None,
        refused: list[Refused],
    ) -> list[tuple[Place, Account]]:
        """Those accounts that an answer from the inputs alone can be compared with."""
        decided = []
        for place, account in pairs:
            why = self._undecided(place, between)
            if why is None:
                decided.append((place, account))
            else:
                refused.append(Refused(place.name, place.subtopology, why))
        return decided

    def _undecided(self, place: Place, between: int | None) -> str | None:
        sub = self.topology.subtopologies[place.subtopology]
        behind = sorted(self.topology.repartition_topics & sub.sources.keys())
        if not behind or between == 0:
            return None
        if between is None:
            return untold(behind[0], self.cut)
        return (
            f"{between} records were on their way through repartition topics at the cut, which "
            "the answer from the inputs has and the state has not yet: let the application come "
            "to the end of its inputs, or leave expected out, and they are taken off"
        )

    def _checked(
        self, pairs: list[tuple[Place, Account]], refused: list[Refused], tolerance: float
    ) -> Iterator[Checked]:
        found = Found(self.spark, self.access, self.cut, self.records)
        ledger = self._ledger()
        for place, account in pairs:
            if account.kind is Kind.STREAM and self.records.is_compacted(place.name):
                why = "it is compacted and no table: records that were written may be gone"
                refused.append(Refused(place.name, place.subtopology, why))
                continue
            try:
                rows = found.rows(place)
                judged = None if ledger is None else found.judged(place, rows, ledger)
                if account.expired is None and place.spec is not None:
                    positions = self.cut.stores[place.name].positions
                    dropped = let_go(account.expected, rows, place, len(positions))
                    account = replace(account, expired=dropped)
                checked = check(place, account, rows, tolerance=tolerance, ledger=judged)
            except ConfigError as error:
                refused.append(Refused(place.name, place.subtopology, str(error)))
                continue
            yield checked

    def _with_origins(self, checked: dict[str, Checked]) -> dict[str, Checked]:
        """Of what is off by the user's own answer the inputs, where the topology tells them."""
        if all(each.balanced for each in checked.values()):
            return checked
        try:
            accounts = _by_name(self._derivation().accounts)
        except UserError:
            return checked
        told = {}
        for name, each in checked.items():
            derivation = accounts.get(_key(each.place))
            origins = None if derivation is None else derivation.origins
            told[name] = replace(each, account=replace(each.account, origins=origins))
        return told

    def _ledger(self) -> Written | None:
        """What the transactions of the cut wrote, by the ledger; None where there is none."""
        if self.cut.ledger_end is None:
            return None
        return Written(self.spark, entries_in_cut(self.access, self.cut))

    def _in_flight(self) -> DataFrame | None:
        """What was between sub-topologies at the cut; None where that can't be told."""
        cut = self.cut
        if self.topology.repartition_topics and cut.ends is None:
            return None
        topics = sorted({each.topic for each in in_flight(cut)}) if cut.ends else []
        if not topics:
            return self.spark.createDataFrame([], _POSITIONS)
        parts = [
            self.records.written(topic, cut.offsets, cut).select(
                "topic", "partition", "offset", "key"
            )
            for topic in topics
        ]
        whole = reduce(lambda one, other: one.unionByName(other), parts)
        return whole.persist(StorageLevel.MEMORY_AND_DISK)

    def _inputs(self) -> dict[str, int]:
        """Offsets of each input topic that are in the cut."""
        found = dict.fromkeys(self.topology.input_topics, 0)
        for partition, offset in self.cut.offsets.items():
            if partition.topic in found:
                found[partition.topic] += offset
        return found


def _key(of: Place | Account) -> tuple[bool, str]:
    """A store and a topic may have the same name."""
    return of.kind is Kind.STORE, of.name


def _by_name(accounts: Iterable[Account]) -> dict[tuple[bool, str], Account]:
    return {_key(account): account for account in accounts}


def _named(accounts: Iterable[Checked]) -> dict[str, Checked]:
    """By name; of a store and a topic with one name the topic's says what it is."""
    found: dict[str, Checked] = {}
    for each in sorted(accounts, key=lambda one: one.kind is not Kind.STORE):
        name = f"{each.name} ({each.kind.value})" if each.name in found else each.name
        found[name] = each
    return found


def _unchecked(
    wanted: Iterable[Place], checked: Iterable[Checked], refused: list[Refused]
) -> tuple[str, ...]:
    """The names in `wanted` of what was not checked, each of which is in `refused` then."""
    there = {_key(each.place) for each in checked}
    missed = [place for place in wanted if _key(place) not in there]
    for place in missed:
        if not any(each.name == place.name for each in refused):
            why = "expected says nothing of it"
            refused.append(Refused(place.name, place.subtopology, why))
    return tuple(dict.fromkeys(place.name for place in missed))


def _reason(place: Place, refused: Iterable[Refused], *, named: bool) -> str | None:
    """Why there is no account of `place`; None where that is said, or goes without saying unless it
    was `named`: of tables that are their own input, of what repartition topics no longer have."""
    if any(each.name == place.name for each in refused):
        return None
    if place.spec is not None and place.spec.source_topic is not None:
        why = f"it is restored from {place.spec.source_topic}, its input, which is what it is"
        return why if named else None
    if place.internal:
        why = "what was processed of it is deleted from time to time, so not all of it is there"
        return why if named else None
    before = [each.name for each in refused if each.subtopology == place.subtopology]
    return f"it comes of what is not checked: {', '.join(dict.fromkeys(before)) or 'its inputs'}"
