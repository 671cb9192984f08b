"""Take a consistent cut: fetch stable offsets once, then wait until all changelogs are readable.

Why one fetch is one moment. A transaction sends its offsets to the group's coordinator before it
asks to be committed, and there they are pending until its marker arrives, when all of them take
effect at once. Say C is the set of transactions whose offsets a fetch returned, in which no
partition that the application reads answered UNSTABLE_OFFSET_COMMIT (pending). A transaction in C
read only what was committed. If another one, T, wrote some of that, then T was committed before, so
its offsets had been sent before: at the time of the fetch they were pending, which would have
answered UNSTABLE_OFFSET_COMMIT, or had taken effect: T is in C. So C has with each transaction all
those that it read from, which is what makes a cut consistent. It takes one request for all
partitions, and the coordinator answers it from one state of the group.

The metadata of the offsets name the changelog position of each store at the commit, so they are of
that moment too. That a marker has reached the group's coordinator says nothing of the changelog's
leader, so each changelog's last stable offset is waited for: then what is committed below the
position can be read.

What is written to other topics has no position in the offsets. Its ends are told in two ways.

Quiet: the offsets are taken (1), then the high watermarks of the outputs, then the last stable
offsets are waited for to reach those, then the offsets are taken again (2). A record of C is below
the watermarks, for it was written before (1). A record below the watermarks is of a transaction
that ended before (2), so if it was committed its offsets are in (2); and where (2) equals (1), in
offset and metadata of every partition, it was in (1): it is of C. Otherwise `ends` is None.

Ledger: the ledger's last stable offset L is taken before the offsets, and outputs are waited for as
above; then the ledger is read from L up to its own high watermark. An entry below L is of a
transaction that had ended before the fetch, hence in C; and one that wrote below the watermarks of
the outputs has ended, hence its entry can be read. So the entries from L on that are not in C name
all the runs of offsets below the watermarks that are not in the cut, while the application runs on.

The limit of both (docs/decisions/0008): a transaction of punctuations alone that changed no store
commits the same offsets and positions again: no cut can tell whether it was before or after.

With at_least_once there are no transactions. Offsets are committed after what they are about is
produced, and name the positions too, so each store is as of its inputs' offsets; what was in it
twice after a crash is in it, and that is the state's fault, not the cut's. Between sub-topologies
such a cut is consistent only when nothing is left to read, and `ends` are told only then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from streams.common.topic_partitions import CommittedOffsets, Partition
from streams.errors import ConfigError, UserError
from streams.ledger import LedgerTransaction, ledger_topic
from streams.spark.cuts.application_topics import (
    ApplicationTopics,
    infer_group_topics,
    list_app_topics,
    read_commit_numbers,
    resolve_store_positions,
)
from streams.spark.cuts.cut import Cut, StoreCut
from streams.spark.cuts.ledger_reader import read_ledger_transactions
from streams.spark.cuts.members import find_runs_outside_cut, trim_excluded_ends
from streams.spark.cuts.offset_client import OffsetClient
from streams.spark.cuts.topic_ids import (
    refuse_offsets_of_former_changelogs,
    refuse_offsets_of_former_topics,
    require_unchanged_topic_ids,
)
from streams.spark.source.broker_access import BrokerAccess, create_access

if TYPE_CHECKING:
    from streams.app import App

AreAllNamed: TypeAlias = bool

log = logging.getLogger(__name__)

_GROUPS_SHOWN_MAX = 10


def read_cut(
    application: App | str,
    *,
    bootstrap_servers: str | None = None,
    kafka: Mapping[str, str] | None = None,
    timeout_ms: int = 60_000,
) -> Cut:
    """Return a consistent cut of an application, which may run on meanwhile.

    `application`: an App, whose topology says what it reads and writes and whose settings say where
    the brokers are; or an application id, for one that is not at hand (or of Kafka Streams): then
    `bootstrap_servers` is needed, and outputs are known from a ledger only. `kafka`: settings of
    librdkafka, which override the App's `connection`. `timeout_ms`: the limit for the whole call.

    Raises: ConfigError if no broker answers or nothing was committed by that id;
    AuthenticationError if a broker refuses the credentials or isn't trusted; UserError if
    transactions stay open, or a changelog was deleted, or a topic was created again.
    """
    app = None if isinstance(application, str) else application
    name = application if isinstance(application, str) else application.application_id
    if timeout_ms < 0:
        raise ConfigError(f"timeout_ms can't be negative: {timeout_ms}")
    if app is not None:
        # Only an App needs this import.
        from streams.spark.application_access import resolve_access

        access = resolve_access(app.config, bootstrap_servers=bootstrap_servers, kafka=kafka)
    elif bootstrap_servers is not None:
        access = create_access(bootstrap_servers, kafka or {})
    else:
        raise ConfigError(
            f"read_cut({name!r}) needs bootstrap_servers='host:port': only an App says itself "
            "where its brokers are"
        )
    return take_cut(application, access, timeout_ms)


def take_cut(application: App | str, access: BrokerAccess, timeout_ms: int = 60_000) -> Cut:
    """Take a consistent cut of an App, or of an application id, from the brokers of `access`.

    Raises what `read_cut` raises.
    """
    app = None if isinstance(application, str) else application
    name = application if isinstance(application, str) else application.application_id
    client = OffsetClient(access, timeout_ms)
    ledger = _find_ledger(client, app, name)
    settled_offset = 0 if ledger is None else client.fetch_last_stable_offsets([ledger])[ledger]
    app_topics = list_app_topics(app) if app is not None else _infer_topics(client, name)
    sources = client.list_partitions(app_topics.sources)
    ledger_topics = () if ledger is None else (ledger.topic,)
    ids_before = client.fetch_topic_ids({*app_topics.names, *ledger_topics})
    committed = client.fetch_stable_offsets(name, sources)
    taken_ms = time.time_ns() // 1_000_000
    if not committed.offsets:
        raise _create_no_offsets_error(client, name)
    refuse_offsets_of_former_topics(committed.offsets, ids_before)
    refuse_offsets_of_former_changelogs(committed.offsets, app_topics.store_changelogs, ids_before)
    stores, exact = _locate_stores_and_check_all_named(client, app_topics, committed)
    offsets = dict.fromkeys(sources, 0) | {p: held.offset for p, held in committed.offsets.items()}
    cut = Cut(
        application_id=name,
        taken_ms=taken_ms,
        offsets=offsets,
        stores=stores,
        exact=exact,
        commits=read_commit_numbers(sources, committed.offsets),
    )
    if ledger is not None:
        cut = _add_ends_by_ledger(client, cut, app_topics, ledger, settled_offset)
    else:
        cut = _add_ends_if_idle(client, cut, app_topics, committed)
    ids_after = client.fetch_topic_ids({*cut.topics, *ledger_topics})
    return replace(cut, topic_ids=require_unchanged_topic_ids(ids_before, ids_after))


def _find_ledger(client: OffsetClient, app: App | None, application_id: str) -> Partition | None:
    """Return the ledger's partition, or None if there is no ledger or the App no longer writes it.

    A ledger that an App no longer keeps says nothing of what the App does now.
    """
    topic = ledger_topic(application_id)
    kept = topic in client.partition_counts and (app is None or app.config.ledger)
    return Partition(topic, 0) if kept else None


def _infer_topics(client: OffsetClient, group: str) -> ApplicationTopics:
    """Infer the topics of an application by its group. Raises ConfigError if it has no offsets."""
    committed = client.fetch_committed_offsets(group, None)
    if not committed.offsets and not committed.pending:
        raise _create_no_offsets_error(client, group)
    # While all offsets are pending no metadata can be read: wait until they are stable.
    stable = client.fetch_stable_offsets(
        group, client.list_partitions(p.topic for p in [*committed.offsets, *committed.pending])
    )
    return infer_group_topics(
        group, stable.offsets, client.partition_counts.keys(), client.list_groups()
    )


def _create_no_offsets_error(client: OffsetClient, group: str) -> ConfigError:
    """Create the error for a group without offsets, with the ids of similar groups."""
    groups = sorted({*client.list_groups()} - {group})  # it may have members, and no offsets yet
    close = get_close_matches(group, groups, n=3, cutoff=0.5)
    shown = ", ".join(map(repr, close or groups[:_GROUPS_SHOWN_MAX])) or "none"
    return ConfigError(
        f"there is no cut of {group!r}: no offsets are committed by that application id at "
        f"{client.servers!r}. Has it processed anything yet? Other groups there are"
        f"{' similar' if close else ''}: {shown}"
    )


def _locate_stores_and_check_all_named(
    client: OffsetClient, app_topics: ApplicationTopics, committed: CommittedOffsets
) -> tuple[dict[str, StoreCut], AreAllNamed]:
    """Return each store's changelog positions, and whether the committed offsets name all of them.

    Waits until the changelogs can be read up to there. A position that is not named is replaced by
    the last stable offset of its changelog partition, with a warning.

    Raises: UserError if a changelog ends before a position.
    """
    stores, unnamed = resolve_store_positions(
        app_topics.store_changelogs, committed.offsets, client.partition_counts
    )
    wanted = {
        Partition(store.changelog, number): at
        for store in stores.values()
        for number, at in store.positions.items()
    }
    ends = client.fetch_high_watermarks(list(wanted))
    for changelog, at in wanted.items():
        if at > ends[changelog]:
            raise UserError(
                f"{changelog} ends at {ends[changelog]}, and the committed offsets say that it "
                f"stood at {at}: it was deleted or made again, so there is no such cut any more"
            )
    client.wait_for_transactions(wanted)
    if not unnamed:
        return stores, True
    stable = client.fetch_last_stable_offsets([changelog for _, changelog in unnamed])
    for name, changelog in unnamed:
        store = stores[name]
        now = {**store.positions, changelog.number: stable[changelog]}
        stores[name] = StoreCut(store.changelog, now)
    log.warning(
        "the offsets of %r name no positions in %s: Kafka Streams or a tool has committed them. "
        "The ends of the changelogs are taken, which may be later than the offsets: this cut is "
        "not exact",
        app_topics.application_id,
        ", ".join(sorted({changelog.topic for _, changelog in unnamed})),
    )
    return stores, False


def _add_ends_by_ledger(
    client: OffsetClient,
    cut: Cut,
    app_topics: ApplicationTopics,
    ledger: Partition,
    settled_offset: int,
) -> Cut:
    """Return the cut with the end offsets of its written topics, which the ledger tells.

    `settled_offset`: all entries of the ledger below it are of transactions that had ended before
    the offsets were fetched.
    """

    def read_transactions(first: int, until: int) -> Iterator[LedgerTransaction]:
        return read_ledger_transactions(client.access, cut.application_id, first, until)

    outputs = app_topics.outputs
    if outputs is None:
        outputs = _list_written_topics(
            cut, read_transactions(0, client.fetch_ends_and_await_transactions([ledger])[ledger])
        )
        if outputs is None:
            log.warning("the ledger of %r is no longer kept: it is not used", cut.application_id)
            return cut
    ends = client.fetch_ends_and_await_transactions(client.list_partitions(outputs))
    ledger_end = client.fetch_ends_and_await_transactions([ledger])[ledger]
    excluded_runs = find_runs_outside_cut(read_transactions(settled_offset, ledger_end), cut, ends)
    ends, excluded_runs = trim_excluded_ends(ends, excluded_runs)
    return replace(cut, ends=ends, beyond=excluded_runs, ledger_end=ledger_end)


def _list_written_topics(
    cut: Cut, transactions: Iterable[LedgerTransaction]
) -> frozenset[str] | None:
    """List the topics other than changelogs that the ledger's transactions wrote.

    Returns None if some offset of the cut is in none of the transactions: then the ledger is no
    longer kept.
    """
    topics: set[str] = set()
    accounted: set[Partition] = set()
    for entry in transactions:
        topics.update(topic for topic, _ in entry.written)
        for offsets in entry.inputs.values():
            accounted.update(p for p, offset in offsets.items() if cut.offsets.get(p) == offset)
    if any(offset and partition not in accounted for partition, offset in cut.offsets.items()):
        return None
    return frozenset(topics) - {store.changelog for store in cut.stores.values()}


def _add_ends_if_idle(
    client: OffsetClient, cut: Cut, app_topics: ApplicationTopics, first_committed: CommittedOffsets
) -> Cut:
    """Return the cut with the end offsets of written topics if nothing was committed meanwhile."""
    if app_topics.outputs is None:
        return cut
    sources = list(cut.offsets)
    ends = client.fetch_ends_and_await_transactions(client.list_partitions(app_topics.outputs))
    drained = (
        app_topics.writes_transactions or client.fetch_last_stable_offsets(sources) == cut.offsets
    )
    if (
        not drained
        or client.fetch_committed_offsets(cut.application_id, sources) != first_committed
    ):
        log.info(
            "%r has gone on while its cut was taken, so the ends of its outputs are not told: "
            "with ledger=True they are at any time",
            cut.application_id,
        )
        return cut
    return replace(cut, ends=ends)
