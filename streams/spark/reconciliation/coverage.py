"""Measure how many of the requested stores, topics and records were reconciled.

An account that was asked for is either checked or unchecked, with the reason; only one that the
caller allows by its name may go unchecked. How many records an account has is reckoned by offsets,
from the first that is still there up to the cut, so that those that nobody reads are counted too:
markers of transactions and what compaction has taken are in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Protocol

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.spark.reconciliation.accounts import AccountKind, RefusedCheck
from streams.spark.source.broker_access import translate_unanswered_requests

if TYPE_CHECKING:
    from streams.runtime.clients import Admin
    from streams.spark.cuts.cut import Cut

AccountKey = tuple[bool, str]
"""Whether an account is a store, and its name: a store and a topic may have the same one."""


class NamedAccount(Protocol):
    """Describes any object that has the name and the kind of a reconciled store or topic."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> AccountKind: ...


def create_account_key(account: NamedAccount) -> AccountKey:
    """Return the key of a reconciled store or topic: whether it is a store, and its name."""
    return account.kind is AccountKind.STORE, account.name


@dataclass(frozen=True, slots=True)
class UncheckedAccount:
    """Represents a store or topic that was requested and not checked, with the reason.

    `is_allowed`: `allow_unchecked` names it. `record_count`: how many records it has by its
    offsets, None if that is not known.
    """

    name: str
    kind: AccountKind
    why: str
    is_allowed: bool
    record_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Counts the requested stores and topics, their records, and those that were checked.

    `accounts_total`: how many accounts the application has. Records are counted by offsets.
    """

    accounts_checked: int
    accounts_asked: int
    accounts_total: int
    records_checked: int
    records_asked: int
    unchecked: tuple[UncheckedAccount, ...] = ()

    @property
    def accounts_percent(self) -> float:
        """Return the checked part of the stores and topics in percent, rounded down to a tenth."""
        return _compute_percent(self.accounts_checked, self.accounts_asked)

    @property
    def records_percent(self) -> float:
        """Return the checked part of the records in percent, rounded down to a tenth."""
        return _compute_percent(self.records_checked, self.records_asked)

    @property
    def refused(self) -> tuple[str, ...]:
        """Return the names of unchecked stores and topics that `allow_unchecked` does not name."""
        names = (each.name for each in self.unchecked if not each.is_allowed)
        return tuple(dict.fromkeys(names))

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return the names of unchecked stores and topics that `allow_unchecked` names."""
        return tuple(dict.fromkeys(each.name for each in self.unchecked if each.is_allowed))

    def __str__(self) -> str:
        """Return the coverage as one line of text."""
        line = (
            f"Checked {self.accounts_checked:,} of {self.accounts_asked:,} accounts "
            f"({self.accounts_percent:g} %) with {self.records_checked:,} of "
            f"{format_count(self.records_asked, 'record')}"
            f" by their offsets ({self.records_percent:g} %)"
        )
        if left := self.accounts_total - self.accounts_asked:
            line += f"; {left:,} more accounts of the application were not asked for"
        return line


def _compute_percent(checked_count: int, requested_count: int) -> float:
    return floor(1_000 * checked_count / requested_count) / 10 if requested_count else 100.0


def measure_coverage(
    requested: Mapping[AccountKey, NamedAccount],
    checked_keys: Collection[AccountKey],
    refusals: Sequence[RefusedCheck],
    *,
    allowed_names: Collection[str],
    record_counts: Mapping[AccountKey, int],
    account_count: int,
) -> Coverage:
    """Compare the requested stores and topics with the checked ones, and count their records.

    `refusals` has the reason of each account that was not checked.
    """
    reasons = {each.name: each.why for each in reversed(refusals)}
    return Coverage(
        accounts_checked=sum(key in checked_keys for key in requested),
        accounts_asked=len(requested),
        accounts_total=account_count,
        records_checked=sum(record_counts.get(key, 0) for key in requested if key in checked_keys),
        records_asked=sum(record_counts.get(key, 0) for key in requested),
        unchecked=tuple(
            UncheckedAccount(
                each.name,
                each.kind,
                reasons[each.name],
                each.name in allowed_names,
                record_counts.get(key),
            )
            for key, each in requested.items()
            if key not in checked_keys
        ),
    )


def count_record_offsets(
    admin: Admin, cut: Cut, accounts: Iterable[NamedAccount]
) -> dict[AccountKey, int]:
    """Count each store's or topic's remaining offsets up to the consistent cut.

    A topic whose end the cut doesn't know is counted as it is now; what has no topic is left out.

    Raises: StreamsError if no broker answers.
    """
    ends: dict[AccountKey, dict[Partition, int]] = {}
    topics_without_end: dict[AccountKey, str] = {}
    for each in accounts:
        key, store = create_account_key(each), cut.stores.get(each.name)
        if each.kind is not AccountKind.STORE:
            found = {p: at for p, at in (cut.ends or {}).items() if p.topic == each.name}
            if found:
                ends[key] = found
            else:
                topics_without_end[key] = each.name
        elif store is not None:
            ends[key] = {Partition(store.changelog, n): at for n, at in store.positions.items()}
    with translate_unanswered_requests("how many records there are can't be asked"):
        if topics_without_end:
            counts = admin.fetch_partition_counts()
            for key, topic in topics_without_end.items():
                partitions = [Partition(topic, number) for number in range(counts.get(topic, 0))]
                if partitions:
                    ends[key] = admin.fetch_last_stable_offsets(partitions)
        begins = admin.fetch_earliest_offsets(sorted({p for each in ends.values() for p in each}))
    return {
        key: sum(max(end - begins[partition], 0) for partition, end in each.items())
        for key, each in ends.items()
    }


def check_allowed_names(allowed_names: Iterable[str], accounts: Iterable[NamedAccount]) -> None:
    """Raise ConfigError if the application has no store or topic of one of these names."""
    names = sorted({each.name for each in accounts})
    for name in allowed_names:
        if name in names:
            continue
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        nearest = f"the nearest is {close[0]!r} of {', '.join(names)}" if close else "it has none"
        raise ConfigError(
            f"allow_unchecked names {name!r}, and the application has no such account: {nearest}"
        )
