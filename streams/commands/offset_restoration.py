"""Plan which offsets `millrace group restore-offsets` commits, and what proves each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from streams.app import App
from streams.command_lines import format_command
from streams.commands.cluster_clients import ClusterClients
from streams.commands.offset_evidence import (
    LedgerOffsets,
    TaskInputs,
    find_committed_record,
    prove_by_ledger,
    read_ledger,
)
from streams.commands.output import print_message
from streams.common.topic_partitions import CommittedOffsets, OffsetAndMetadata, Partition
from streams.errors import ConfigError
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.offset_metadata import (
    OffsetMetadata,
    decode_metadata,
    has_metadata_of_streams,
    has_positions,
    replace_positions,
)
from streams.runtime.offset_proof import is_lost
from streams.runtime.offset_refusals import (
    explain_accepted_loss,
    explain_lost_between_steps,
    explain_unproven,
    offer_reset,
)
from streams.runtime.topic_ids import fetch_topic_id_hashes, find_offsets_of_former_topics
from streams.settings.offset_reset import STOP_WORDS

_OUT_OF_RANGE = "offset_out_of_range"


@dataclass(frozen=True, slots=True)
class RestoredOffset:
    """Describes one input: its offset now, the one that is to be committed, and what proves it.

    `then` is None where nothing proves one. `is_proven`: the ledger does, and not a person alone.
    """

    partition: Partition
    now: int | None
    then: int | None
    proof: str
    metadata: str = ""
    is_proven: bool = False


class Restoration:
    """Plans the offsets of one application. `made_again` are the inputs that a person names."""

    def __init__(
        self, clients: ClusterClients, app: App, *, accept: bool, made_again: Collection[str]
    ) -> None:
        self._clients = clients
        self._app = app
        self._topology = app.topology()
        self._accept = accept
        self._made_again = set(made_again)
        inputs = {topic for sub in self._topology.subtopologies for topic in sub.sources}
        if unknown := sorted(self._made_again - inputs):
            raise ConfigError(
                f"--made-again {unknown[0]!r}: the application reads "
                f"{', '.join(sorted(inputs))}, and no such topic"
            )

    def plan_offsets(self) -> Iterator[RestoredOffset]:
        """Yield each input whose offset does not account for its task's state."""
        committed = self._committed.offsets
        former = self._find_former()
        for task in self._list_tasks():
            ends = self._clients.admin.fetch_latest_offsets(list(task.changelogs.values()))
            positions = {store: ends[changelog] for store, changelog in task.changelogs.items()}
            texts = [committed[p].metadata for p in task.partitions if p in committed]
            known = [decode_metadata(text) for text in texts if has_positions(text)]
            for partition in task.partitions:
                if partition.topic in self._made_again:
                    yield self._begin_again(partition, positions)
                elif restored := self._restore(task, partition, positions, known, former):
                    yield restored

    def require_offsets(self, plan: Collection[RestoredOffset]) -> None:
        """Raise ConfigError if nothing proves the offset of an input."""
        if unproven := [each.partition for each in plan if each.then is None]:
            raise ConfigError(explain_unproven(unproven, self._topology.repartition_topics))

    def require_accepted_loss(
        self, plan: Collection[RestoredOffset], *, is_accepted: bool, is_shown: bool
    ) -> None:
        """Raise ConfigError for offsets of repartition topics that nothing proves, unless accepted.

        `is_shown`: nothing is to be committed, and the loss is only told.
        """
        between = self._topology.repartition_topics
        at_risk = {
            each.partition.topic
            for each in plan
            if each.partition.topic in between and not each.is_proven
        }
        if not at_risk:
            return
        problem = explain_accepted_loss(at_risk)
        if not is_accepted and not is_shown:
            raise ConfigError(
                f"{problem}. Nothing was committed; if it is meant, add --accept-loss"
            )
        print_message(problem)

    @cached_property
    def _committed(self) -> CommittedOffsets:
        """Return all committed offsets of the group. Raises ConfigError while some are pending."""
        found = fetch_group_offsets(
            self._clients.open_connection, self._app.application_id, None, require_stable=True
        )
        if found.pending:
            raise ConfigError(f"a transaction is still open on {found.pending[0]}: try again later")
        return found

    @cached_property
    def _ledger(self) -> LedgerOffsets:
        return read_ledger(self._clients, self._app.application_id)

    @cached_property
    def _topic_ids(self) -> Mapping[str, int]:
        """Return the hash of the id of each input that exists."""
        inputs = {topic for sub in self._topology.subtopologies for topic in sub.sources}
        there = inputs & self._clients.partition_counts.keys()
        return fetch_topic_id_hashes(self._clients.admin, there)

    def _find_former(self) -> set[Partition]:
        """Return the inputs whose committed offset is of a former topic, and refused for that."""
        stops = self._app.config.offset_out_of_range == STOP_WORDS[_OUT_OF_RANGE]
        found = find_offsets_of_former_topics(self._committed.offsets, self._topic_ids)
        return {p for p in found if stops or p.topic in self._topology.repartition_topics}

    def _begin_again(self, partition: Partition, positions: Mapping[str, int]) -> RestoredOffset:
        """Return the beginning of an input that a person says was made again.

        Raises ConfigError where its committed offset, or the ledger, names the topic that is there.
        """
        topic, held = partition.topic, self._committed.offsets.get(partition)
        now = self._topic_ids.get(topic)
        named = None if held is None else decode_metadata(held.metadata).topic_id_hash(topic)
        if named is None:
            named = self._ledger.topic_ids.get(partition)
        if now is not None and named == now:
            source = "the ledger" if held is None else "its committed offset"
            raise ConfigError(
                f"--made-again {topic!r}: {source} names the topic that is there now, so "
                f"{partition} is the one that was read"
            )
        base = "" if held is None or not has_positions(held.metadata) else held.metadata
        entries = dict(positions)
        if now is not None:
            entries[f"id of {topic}"] = now
        start = self._clients.admin.fetch_earliest_offsets([partition])[partition]
        return RestoredOffset(
            partition,
            None if held is None else held.offset,
            start,
            "accepted: the topic was made again" + ("" if named is None else ", as its id says"),
            replace_positions(base, entries),
        )

    def _restore(
        self,
        task: TaskInputs,
        partition: Partition,
        positions: Mapping[str, int],
        known: Collection[OffsetMetadata],
        former: Collection[Partition],
    ) -> RestoredOffset | None:
        """Return the offset of an input as it is proven or accepted; None where it is in order.

        `known` is what offsets of the task say, `former` are the inputs of other topics.
        """
        held = self._committed.offsets.get(partition)
        if not task.has_stores or (held is None and not is_lost(partition.topic, known)):
            return None  # an input that was added begins as `auto_offset_reset` says
        reason = self._find_reason(task, held)
        is_former = partition in former
        if is_former:
            reason = "of another topic of the same name, which was deleted and created again"
        if reason is None:
            return None
        now = None if held is None else held.offset
        if self._accept and held is not None and not is_former:
            text = replace_positions(held.metadata, positions)
            return RestoredOffset(partition, now, now, f"accepted: {reason}", text)
        then, proof = prove_by_ledger(self._clients, task, partition, self._ledger, self._topic_ids)
        if then is None and held is None and not task.changelogs:
            return None  # whether it has any state is known on its machine alone
        text = replace_positions("", positions)
        is_proven = then is not None
        return RestoredOffset(partition, now, then, f"{reason}; {proof}", text, is_proven)

    def _list_tasks(self) -> Iterator[TaskInputs]:
        """Yield the tasks that have stores, or read a topic that was made again.

        Raises ConfigError for topics that are not there.
        """
        counts = self._clients.partition_counts
        for sub in self._topology.subtopologies:
            if not sub.stores and self._made_again.isdisjoint(sub.sources):
                continue
            stores = [spec.name for spec in sub.stores if spec.logged and spec.source_topic is None]
            changelogs = {name: self._topology.restore_topic_of(name) for name in stores}
            if missing := sorted(topic for topic in sub.sources if topic not in counts):
                raise ConfigError(self._explain_missing_topic(missing[0], changelogs.values()))
            for number in range(max(counts[topic] for topic in sub.sources)):
                for changelog in changelogs.values():
                    if number >= counts.get(changelog, 0):
                        raise ConfigError(
                            f"there is no changelog {Partition(changelog, number)}: the state is "
                            "gone, and no offset accounts for it; start over with "
                            f"{offer_reset()}"
                        )
                yield TaskInputs(
                    f"{sub.number}_{number}",
                    [Partition(t, number) for t in sorted(sub.sources) if number < counts[t]],
                    {name: Partition(topic, number) for name, topic in changelogs.items()},
                    has_stores=bool(sub.stores),
                )

    def _explain_missing_topic(self, topic: str, changelogs: Iterable[str]) -> str:
        """Return the message for an input that does not exist."""
        if topic in self._topology.repartition_topics:
            return f"there is no topic {topic!r}. {explain_lost_between_steps([topic])}"
        counts = [self._clients.partition_counts.get(each, 0) for each in changelogs]
        number = ["--partitions", str(max(counts))] if any(counts) else []
        return (
            f"there is no topic {topic!r}: create it "
            f"({format_command('create-topics', topic, *number)}) and run this again with "
            f"--made-again {topic}, or start over with {offer_reset()}"
        )

    def _find_reason(self, task: TaskInputs, held: OffsetAndMetadata | None) -> str | None:
        """Return why the offset of an input does not account for the task's state; None if it does.

        At least once, positions are not compared: a changelog may be ahead. Raises ConfigError for
        an offset that a reset has marked.
        """
        metadata = decode_metadata("" if held is None else held.metadata)
        if metadata.is_reset_begun:
            raise ConfigError(
                f"a reset was begun, and not ended (task {task.name}): run it again, "
                f"{offer_reset()}"
            )
        is_own = held is not None and has_metadata_of_streams(held.metadata)
        if not is_own and not task.changelogs:
            return "no offset" if held is None else "set by a tool"
        if is_own and (not self._app.config.exactly_once or metadata.is_at_least_once):
            return None
        starts: dict[Partition, int] = {}
        for store, changelog in task.changelogs.items():
            position = metadata.position_of_store(store)
            if is_own and position is None:
                continue  # of Kafka Streams, or of a version without the store
            starts[changelog] = position or 0
        found = find_committed_record(self._clients, starts)
        if found is None:
            return None
        if held is None:
            return "no offset"
        return f"older than {found}" if is_own else "set by a tool"
