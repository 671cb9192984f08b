"""Plant bugs that only passing days show, in the runtime and in the broker.

docs/decisions/0051 lists which silent error each of them stands for, and where others are planted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import KafkaError

from coordinator.groups import offset_expiry
from coordinator.log.producer_state import ProducerStateManager
from state import transaction
from state.disk_layout import HeldBackDisk
from state.version_rewrite import VersionRewrite
from streams.runtime.assigning import internal_topics
from streams.runtime.assigning.internal_topic_check import InternalTopicCheck
from streams.runtime.changelogs.changelog import ChangelogExpiry
from streams.runtime.changelogs.logged_store import LoggedStore
from streams.runtime.clients import errors
from streams.runtime.offsets import offset_reset
from streams.runtime.offsets.first_starts import Beginning, FirstStarts
from streams.runtime.offsets.offset_reset import OffsetResetter
from streams.runtime.offsets.repeated_writes import RepeatedWriteCheck, UntrustedInputs
from streams.runtime.restoring import changelog_reader
from streams.runtime.tasks import task_creator
from streams.runtime.tasks.offset_proof import UNCHECKED
from streams.runtime.threads.moved_positions import MovedPositions
from tests.simulation.bugs import replaced
from tests.simulation.runtime.bugs import Bug, several
from tests.simulation.runtime.days.scenario import BEGUN_AT_THE_END, DAY_MS
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class PlantedDays:
    """Holds a bug, the law that it breaks by its checkers' names, and a story that shows it."""

    bug: Bug
    laws: tuple[str, ...]
    story: str | None = None
    setting: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.bug.__name__}, {self.story}"


def records_that_expired_unread_skipped(world: World) -> AbstractContextManager[None]:
    """Make an offset out of range go on at the beginning of what is left, without a word."""

    def make(original: Any) -> Any:
        def create(self: OffsetResetter, *arguments: Any, **named: Any) -> None:
            original(self, *arguments, **{**named, "offset_out_of_range": "earliest"})

        return create

    return replaced(OffsetResetter, "__init__", make)


def changelogs_cut_by_the_clock(world: World) -> AbstractContextManager[None]:
    """Make changelogs of tables lose records after the brokers' default retention."""

    def make(original: Any) -> Any:
        def settings(*arguments: Any) -> dict[str, str]:
            return {**original(*arguments), "cleanup.policy": "compact,delete"}

        return settings

    return replaced(internal_topics, "changelog_settings", make)


def offsets_of_living_groups_expire(world: World) -> AbstractContextManager[None]:
    """Make the broker count the retention of offsets from their commit, members or not."""

    def make(original: Any) -> Any:
        def find(shard: Any, group_id: str) -> Any:
            policy = original(shard, group_id)
            return policy and replace(policy, is_subscribed=lambda topic: False)

        return find

    return replaced(offset_expiry, "find_offset_policy", make)


def expired_producers_end_their_worker(world: World) -> AbstractContextManager[None]:
    """Make a worker give up when its transactional id has expired while it was idle."""

    def make(original: Any) -> Any:
        return original - {KafkaError.INVALID_PRODUCER_ID_MAPPING}

    def permanent(original: Any) -> Any:
        return original | {KafkaError.INVALID_PRODUCER_ID_MAPPING}

    return several(
        replaced(errors, "FENCED_ERRORS", make), replaced(errors, "PERMANENT_ERRORS", permanent)
    )


def offsets_taken_as_they_are(world: World) -> AbstractContextManager[None]:
    """Make a task read from its offsets, or from the beginning, whatever its stores hold."""
    return replaced(task_creator, "prove_offsets", lambda original: lambda *_, **__: UNCHECKED)


def records_written_again(world: World) -> AbstractContextManager[None]:
    """Make a task read its input again, whatever the repartition topics that it writes hold."""
    return replaced(
        RepeatedWriteCheck,
        "find_untrusted_inputs",
        lambda original: lambda *_, **__: UntrustedInputs([], [], {}),
    )


def windows_cut_by_the_clock(world: World) -> AbstractContextManager[None]:
    """Make changelogs of windows lose what is a day older than the store keeps them."""

    def make(original: Any) -> Any:
        def settings(store: Any, *arguments: Any) -> dict[str, str]:
            retention_ms = (store.retention_ms or 0) + DAY_MS
            return {**original(store, *arguments), "retention.ms": str(retention_ms)}

        return settings

    return replaced(internal_topics, "changelog_settings", make)


def lost_windows_left_out(world: World) -> AbstractContextManager[None]:
    """Make a store of windows be restored from what is left of a changelog that was cut."""
    return several(
        windows_cut_by_the_clock(world),
        replaced(ChangelogExpiry, "may_begin_at", lambda original: lambda *_, **__: True),
    )


def versions_compacted_by_the_clock(world: World) -> AbstractContextManager[None]:
    """Make brokers compact changelogs of versions, a day after the history by the wall clock."""

    def make(original: Any) -> Any:
        def settings(store: Any, *arguments: Any) -> dict[str, str]:
            return {
                **original(store, *arguments),
                "cleanup.policy": "compact",
                "min.compaction.lag.ms": str((store.history_ms or 0) + DAY_MS),
                "min.cleanable.dirty.ratio": "0",
                "segment.ms": "1",
            }

        return settings

    return replaced(internal_topics, "changelog_settings", make)


def lost_versions_left_out(world: World) -> AbstractContextManager[None]:
    """Make a versioned store be restored from what is left of a changelog that was compacted."""
    return several(
        versions_compacted_by_the_clock(world),
        replaced(ChangelogExpiry, "may_begin_at", lambda original: lambda *_, **__: True),
    )


def versions_deleted_unwritten(world: World) -> AbstractContextManager[None]:
    """Make a changelog of versions lose what a rewrite has not written again."""

    def make(original: Any) -> Any:
        def take(self: VersionRewrite, *_: Any) -> dict[bytes, bytes]:
            self.is_complete = True
            return {}

        return take

    return replaced(VersionRewrite, "advance_to_next_entries", make)


def settings_left_as_they_are(world: World) -> AbstractContextManager[None]:
    """Make an application start on changelogs whose settings lose records."""
    return replaced(InternalTopicCheck, "check_topics", lambda original: lambda *_: None)


def first_positions_not_committed(world: World) -> AbstractContextManager[None]:
    """Make an application that has begun at an input's end begin at its end again."""

    def make(original: Callable[..., Any]) -> Any:
        def start(*arguments: Any, must_commit_positions: bool) -> Any:
            return original(*arguments, must_commit_positions=False)

        return start

    return replaced(task_creator, "start_restoring_task", make)


def changelogs_taken_as_they_are(world: World) -> AbstractContextManager[None]:
    """Make a store be restored from what its changelog has, whatever the offsets rest on."""

    def begin(original: Any) -> Any:
        return lambda *arguments, required_offset, **rest: original(
            *arguments, required_offset=0, **rest
        )

    return several(
        offsets_taken_as_they_are(world), replaced(changelog_reader, "find_restore_start", begin)
    )


def changelogs_known_by_name_alone(world: World) -> AbstractContextManager[None]:
    """Make a store be restored from another changelog of the same name that is long enough."""

    def begin(original: Any) -> Any:
        return lambda *arguments, committed_id_hash, **rest: original(*arguments, **rest)

    return replaced(changelog_reader, "find_restore_start", begin)


def moved_positions_not_committed(world: World) -> AbstractContextManager[None]:
    """Make a position that has moved over aborted records alone wait for the next record."""
    return replaced(MovedPositions, "request_commits", lambda original: lambda *_, **__: None)


def topics_made_again_taken_for_the_former(world: World) -> AbstractContextManager[None]:
    """Make an application go on in another topic of the same name, at the offset of the former."""

    def make(original: Any) -> Any:
        return lambda *_: {}

    return replaced(offset_reset, "fetch_topic_id_hashes", make)


def added_partitions_begin_at_their_ends(world: World) -> AbstractContextManager[None]:
    """Make a partition that was added later begin where the policy says, as a first start does."""
    return replaced(FirstStarts, "classify_beginning", lambda original: lambda *_: Beginning.NOW)


def stores_emptied_when_opened(world: World) -> AbstractContextManager[None]:
    """Make a store in the layout of another version be emptied before its changelog is asked."""

    def make(original: Any) -> Any:
        def read(disk: Any, layout: str, store_name: str) -> Any:
            usable, checkpoint = original(disk, layout, store_name)
            if isinstance(usable, HeldBackDisk):
                usable.clear_all_data()
                usable = disk
            return usable, checkpoint

        return read

    return replaced(transaction, "read_checkpoint_or_hold_disk_back", make)


def stores_emptied_before_the_changelog_is_asked(world: World) -> AbstractContextManager[None]:
    """Make a restore empty a store that can't be used, and refuse as if it had left it."""

    def make(original: Any) -> Any:
        def take(self: LoggedStore, *arguments: Any) -> None:
            original(self, *arguments)
            reason = self.rebuild_reason
            if reason:
                self.store.clear_all_data()
                self.damage = reason

        return take

    return replaced(LoggedStore, "apply_disk_checkpoint", make)


def producers_forgotten_at_once(world: World) -> AbstractContextManager[None]:
    """Make the broker forget each producer with the next check: a retry is written twice."""

    def make(original: Any) -> Any:
        return lambda self, now_ms, idle_ms: original(self, now_ms, 0)

    return replaced(ProducerStateManager, "forget_idle_producers", make)


WRONG = ("exactly_once", "partial", "stores", "closed")
_WINDOWS = {"kind": "closing"}
_HELD_BACK = {"kind": "suppress"}
_VERSIONS = {"kind": "versioned", "persistent": False, "standbys": 0.0}
_COUNT = {"kind": "count", "persistent": False}
_REGROUP = {"kind": "regroup", "persistent": False}
DAYS_BUGS = (
    PlantedDays(records_that_expired_unread_skipped, ("exactly_once",), "lost unread", _COUNT),
    PlantedDays(changelogs_cut_by_the_clock, ("refusal", *WRONG), None, _COUNT),
    PlantedDays(
        offsets_of_living_groups_expire,
        ("exactly_once", "offsets", "refusal"),
        "idle for weeks",
        _COUNT,
    ),
    PlantedDays(moved_positions_not_committed, ("refusal",), "idle after aborted", _COUNT),
    PlantedDays(windows_cut_by_the_clock, ("refusal", "closed"), "windows that stand", _WINDOWS),
    PlantedDays(lost_windows_left_out, ("closed",), "windows that stand", _WINDOWS),
    PlantedDays(stores_emptied_when_opened, ("refusal",), "layout changed", _HELD_BACK),
    PlantedDays(
        stores_emptied_before_the_changelog_is_asked, ("refusal",), "layout changed", _HELD_BACK
    ),
    PlantedDays(versions_compacted_by_the_clock, ("refusal",), "windows that stand", _VERSIONS),
    PlantedDays(lost_versions_left_out, ("results",), "windows that stand", _VERSIONS),
    PlantedDays(versions_deleted_unwritten, ("results",), "windows that stand", _VERSIONS),
    PlantedDays(settings_left_as_they_are, ("refusal", *WRONG), "changelog that deletes", _COUNT),
    PlantedDays(offsets_taken_as_they_are, WRONG, "stopped beyond offsets", _COUNT),
    PlantedDays(offsets_taken_as_they_are, WRONG, "offsets set back", _COUNT),
    PlantedDays(records_written_again, WRONG, "offsets set back", _REGROUP),
    PlantedDays(changelogs_taken_as_they_are, ("offsets", *WRONG), "reset interrupted", _COUNT),
    PlantedDays(
        changelogs_known_by_name_alone, ("offsets", *WRONG), "changelog filled again", _COUNT
    ),
    PlantedDays(first_positions_not_committed, ("exactly_once",), BEGUN_AT_THE_END, _COUNT),
    PlantedDays(
        topics_made_again_taken_for_the_former, ("refusal", *WRONG), "topic made again", _COUNT
    ),
    PlantedDays(
        added_partitions_begin_at_their_ends,
        ("exactly_once", "progress"),
        "partition added at latest",
        {"kind": "copy"},
    ),
    PlantedDays(expired_producers_end_their_worker, ("refusal", "progress"), "idle for weeks"),
)
