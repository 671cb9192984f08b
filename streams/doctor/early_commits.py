"""Find readers that committed an offset before the transaction of the record before it had ended.

A reader of committed records is given a record only after the marker of its transaction was
appended, so it commits an offset behind the record later still. Both times are the brokers'. They
stay in the logs, so that this is seen afterwards, where the offset beyond the last stable one
(`readers`) is seen only in the moment. One such commit may be a tool's, which sets an offset to the
end of a partition; two are a reader's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from streams.common.counted import format_count
from streams.common.topic_partitions import Partition
from streams.doctor.cluster_facts import OFFSETS_TOPIC, ClusterFacts
from streams.doctor.commit_times import (
    OffsetCommit,
    choose_offsets_partition,
    decode_committed_partition,
    decode_offset_commit,
)
from streams.doctor.transaction_ends import NoTransactionEnd, find_transaction_end
from streams.errors import StreamsError
from streams.spark.stores.raw_fetch import LeaderChanged, fetch_batches, require_leader

_RECORDS_MAX = 20_000
"""The number of offsets of a partition of the offsets' topic that are read, the newest ones."""
_COMMITS_MAX = 20
_COMPARED_MAX = 200
_BYTES_MAX = 1 << 18
_CLOCKS_APART_MS = 1_000
"""The milliseconds by which the clocks of several brokers may be apart."""
_PROOFS = 2


class EarlyCommits(NamedTuple):
    """Holds a partition with such a commit for each reader, and how many commits were compared.

    `incomparable` counts the commits that could not be, by the reason.
    """

    proven: Mapping[str, Partition]
    compared_count: int
    incomparable: Mapping[NoTransactionEnd, int]

    def describe_comparison(self) -> str:
        """Return words for the number of commits that were compared; why, where it is none."""
        if self.compared_count:
            count = format_count(self.compared_count, "commit")
            verb = "was" if self.compared_count == 1 else "were"
            return f"{count} of theirs {verb} compared with the ends of transactions"
        if not self.incomparable:
            return "no commit of theirs is among the newest records of the offsets' topic"
        count = format_count(sum(self.incomparable.values()), "commit")
        reasons = ", ".join(f"{number} {why}" for why, number in self.incomparable.items())
        more = ""
        if NoTransactionEnd.MARKER in self.incomparable:
            more = ": transactions are over sooner than such a reader commits, so that to look "
            more += "again hardly helps"
        return f"none of the newest {count} of theirs can be compared, as {reasons}{more}"


def find_early_commits(
    cluster: ClusterFacts, groups: Collection[str], outputs: Collection[Partition]
) -> EarlyCommits:
    """Compare the newest commits of groups with the ends of transactions in the outputs.

    Raises: AuthorizationError where the offsets' topic may not be read.
    """
    commits = fetch_newest_commits(cluster, groups, set(outputs))
    margin_ms = 0 if len(cluster.description().brokers) == 1 else _CLOCKS_APART_MS
    return select_early_commits(
        commits,
        lambda partition, offset: _fetch_batches_from(cluster, partition, offset),
        margin_ms,
    )


def fetch_newest_commits(
    cluster: ClusterFacts, groups: Collection[str], outputs: Collection[Partition]
) -> list[OffsetCommit]:
    """Read the newest commits of these groups for these partitions, the newest first."""
    count = len(cluster.description().topics.get(OFFSETS_TOPIC, ()))
    if not count:
        return []
    places = sorted({Partition(OFFSETS_TOPIC, choose_offsets_partition(g, count)) for g in groups})
    firsts = cluster.admin().fetch_earliest_offsets(places)
    ends = cluster.admin().fetch_last_stable_offsets(places)
    starts = {p: max(firsts[p], ends[p] - _RECORDS_MAX) for p in places}
    reader = cluster.clients().create_reader(committed_only=True)
    with closing(reader):
        found = decode_commits(
            (message.key(), message.value()) for message in reader.read_records(starts, ends)
        )
    kept = (each for each in found if each.group in groups and each.partition in outputs)
    return sorted(kept, key=lambda each: each.committed_at_ms, reverse=True)


def decode_commits(records: Iterable[tuple[bytes | None, bytes | None]]) -> list[OffsetCommit]:
    """Return the commits in records of the offsets' topic that are of the topics there are now.

    Offsets are deleted with their topic: commits before that are of another one of its name.
    """
    found: dict[tuple[str, Partition], list[OffsetCommit]] = {}
    for key, value in records:
        place = decode_committed_partition(key)
        if place is None:
            continue
        if value is None:
            found.pop(place, None)
        elif (commit := decode_offset_commit(key, value)) is not None:
            found.setdefault(place, []).append(commit)
    return [commit for commits in found.values() for commit in commits]


def select_early_commits(
    commits: Iterable[OffsetCommit],
    fetch: Callable[[Partition, int], bytes],
    margin_ms: int,
) -> EarlyCommits:
    """Return the readers of which several commits were earlier than the ends of transactions.

    `commits` are the newest first; `fetch` returns the batches of a partition from an offset on.
    """
    looked_at: dict[tuple[str, Partition], int] = {}
    early: dict[str, set[int]] = {}
    proven: dict[str, Partition] = {}
    compared = 0
    incomparable: Counter[NoTransactionEnd] = Counter()
    for commit in islice(_exclude_repeated_commits(commits), _COMPARED_MAX):
        place = commit.group, commit.partition
        if commit.group in proven or looked_at.get(place, 0) >= _COMMITS_MAX or not commit.offset:
            continue
        looked_at[place] = looked_at.get(place, 0) + 1
        before = commit.offset - 1
        ended_at_ms = find_transaction_end(fetch(commit.partition, before), before)
        if isinstance(ended_at_ms, NoTransactionEnd):
            incomparable[ended_at_ms] += 1
            continue
        compared += 1
        if commit.committed_at_ms + margin_ms < ended_at_ms:
            times = early.setdefault(commit.group, set())
            times.add(commit.committed_at_ms)
            if len(times) >= _PROOFS:
                proven[commit.group] = commit.partition
    return EarlyCommits(proven, compared, incomparable)


def _exclude_repeated_commits(commits: Iterable[OffsetCommit]) -> Iterable[OffsetCommit]:
    """Yield, of several commits of one offset by one group, the first in time alone."""
    firsts: dict[tuple[str, Partition, int], OffsetCommit] = {}
    for each in commits:
        firsts[each.group, each.partition, each.offset] = each
    return sorted(firsts.values(), key=lambda each: each.committed_at_ms, reverse=True)


def _fetch_batches_from(cluster: ClusterFacts, partition: Partition, offset: int) -> bytes:
    """Return the batches of a partition from an offset on; none where that is not in the log."""
    clients = cluster.clients()
    with closing(clients.open_connection(None)) as bootstrap:
        try:
            leader = require_leader(bootstrap, partition)
            with closing(clients.open_connection(leader.address)) as connection:
                _, part = fetch_batches(connection, partition, leader.epoch, offset, _BYTES_MAX)
        except (LeaderChanged, StreamsError):
            return b""
    return bytes(part.records or b"")
