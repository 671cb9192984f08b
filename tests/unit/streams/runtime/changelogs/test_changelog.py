"""Test whether a store resumes its changelog or is rebuilt, by position, topic id and age."""

from __future__ import annotations

import pytest

from state.store_checkpoint import StoreCheckpoint
from streams import StreamsError
from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import Partition
from streams.runtime.changelogs.changelog import (
    NO_EXPIRY,
    ChangelogExpiry,
    ChangelogRange,
    RestoreStart,
    find_restore_start,
    tombstone_retention_ms,
)

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
LONG_AGO_MS = NOW_MS - 2 * DAY_MS


def changelog(
    start: int = 10, end: int = 20, topic_id: str = "id", kept_ms: int | None = DAY_MS
) -> ChangelogRange:
    return ChangelogRange(Partition("a-c-changelog", 0), start, end, topic_id, kept_ms, NOW_MS)


def begin(
    checkpoint: StoreCheckpoint | None,
    of: ChangelogRange | None = None,
    *,
    required: int = 0,
    committed_id: str | None = None,
    transactions: bool = True,
    expiry: ChangelogExpiry = NO_EXPIRY,
    accepts_loss: bool = False,
) -> RestoreStart:
    return find_restore_start(
        *("c", checkpoint, of or changelog()),
        required_offset=required,
        committed_id_hash=None if committed_id is None else hash_topic_id(committed_id),
        is_transactional=transactions,
        expiry=expiry,
        accepts_loss=accepts_loss,
    )


def test_a_store_that_was_never_written_begins_at_the_start() -> None:
    assert begin(None) == RestoreStart(10, NOW_MS)


@pytest.mark.parametrize(
    ("position", "since_ms"), [(10, NOW_MS - 5), (18, NOW_MS - 5), (20, NOW_MS)]
)
def test_a_store_inside_its_changelog_goes_on_where_it_is(position: int, since_ms: int) -> None:
    assert begin(StoreCheckpoint(position, "id", NOW_MS - 5)) == RestoreStart(position, since_ms)


@pytest.mark.parametrize("position", [9, 21])
def test_a_store_outside_its_changelog_is_rebuilt(position: int) -> None:
    found = begin(StoreCheckpoint(position, "id", NOW_MS))
    assert (found.position, found.since_ms) == (10, NOW_MS)
    assert found.rebuild_reason is not None
    assert f"it is at {position} and a-c-changelog[0] has 10 to 20" in found.rebuild_reason


def test_a_store_of_another_topic_id_is_rebuilt() -> None:
    found = begin(StoreCheckpoint(15, "old", NOW_MS))
    assert found.rebuild_reason is not None
    assert "deleted and made again" in found.rebuild_reason


def test_a_store_that_may_have_missed_deletions_is_rebuilt() -> None:
    found = begin(StoreCheckpoint(15, "id", LONG_AGO_MS))
    assert found.rebuild_reason is not None
    assert "written 172800 s ago" in found.rebuild_reason
    assert "from 15 to 20" in found.rebuild_reason
    assert "keeps deletions for 86400 s" in found.rebuild_reason


@pytest.mark.parametrize(("ahead_ms", "is_rebuilt"), [(60_000, False), (DAY_MS // 5, True)])
def test_a_store_that_was_written_in_the_future_is_rebuilt_since_its_age_is_unknown(
    ahead_ms: int, is_rebuilt: bool
) -> None:
    found = begin(StoreCheckpoint(15, "id", NOW_MS + ahead_ms), changelog())
    assert (found.rebuild_reason is not None) is is_rebuilt


@pytest.mark.parametrize(("age_ms", "rebuilt"), [(77_759_999, False), (77_760_000, True)])
def test_the_margin_is_a_tenth_of_the_time_that_deletions_are_kept(
    age_ms: int, rebuilt: bool
) -> None:
    assert (begin(StoreCheckpoint(15, "id", NOW_MS - age_ms)).rebuild_reason is not None) is rebuilt


@pytest.mark.parametrize(
    ("position", "transactions", "rebuilt"),
    [(20, True, False), (19, True, False), (18, True, True), (20, False, False), (19, False, True)],
)
def test_where_nothing_was_written_since_nothing_was_missed_however_long_ago(
    position: int, transactions: bool, rebuilt: bool
) -> None:
    """Test that an old store is kept if its changelog has no newer record.

    With transactions, the last offset is the marker of the transaction that brought the store to
    its position.
    """
    found = begin(StoreCheckpoint(position, "id", LONG_AGO_MS), transactions=transactions)
    assert (found.rebuild_reason is not None) is rebuilt
    assert rebuilt or found == RestoreStart(position, NOW_MS)


def test_a_changelog_that_is_not_compacted_loses_no_deletion_of_its_own() -> None:
    assert begin(StoreCheckpoint(15, "id", 1), changelog(kept_ms=None)).rebuild_reason is None


def test_a_store_whose_time_nobody_noted_is_not_emptied_on_suspicion() -> None:
    assert begin(StoreCheckpoint(15, "id", 0)) == RestoreStart(15, 0)


@pytest.mark.parametrize(
    "checkpoint", [None, StoreCheckpoint(15, "id", NOW_MS), StoreCheckpoint(20, "id", 1)]
)
def test_a_changelog_that_lost_what_offsets_rest_on_is_refused(
    checkpoint: StoreCheckpoint | None,
) -> None:
    with pytest.raises(StreamsError, match=r"store 'c' ends at 20, and .* when it stood at 21"):
        begin(checkpoint, required=21)


@pytest.mark.parametrize("checkpoint", [None, StoreCheckpoint(15, "id", NOW_MS)])
def test_a_changelog_of_another_id_than_offsets_were_committed_with_is_refused(
    checkpoint: StoreCheckpoint | None,
) -> None:
    with pytest.raises(StreamsError, match="is another topic of the same name: it was deleted"):
        begin(checkpoint, changelog(0), required=15, committed_id="old")
    begin(checkpoint, changelog(0), required=15, committed_id="id")


def test_a_changelog_made_again_is_taken_where_no_committed_offset_rests_on_the_old_one() -> None:
    assert begin(None, required=0, committed_id="old") == RestoreStart(10, NOW_MS)


def test_a_broker_without_topic_ids_tells_no_changelog_from_another() -> None:
    zero = "A" * 22
    assert begin(None, changelog(0, topic_id=zero), required=15, committed_id="old").position == 0


def test_a_changelog_made_again_is_refused_where_offsets_rest_on_the_old_one() -> None:
    texts = set()
    for required in (1, 20, 21):
        with pytest.raises(
            StreamsError, match=r"^changelog .* was deleted and made again: .* Start over with"
        ) as raised:
            begin(StoreCheckpoint(15, "old", NOW_MS), required=required)
        texts.add(str(raised.value))
    assert len(texts) == 1, "a standby that waits would log each"


def test_an_empty_changelog_made_again_is_said_to_be_of_a_start_that_found_none() -> None:
    empty, store = changelog(0, 0), StoreCheckpoint(15, "old", NOW_MS)
    by_a_start = "was deleted, and made again empty by a worker's start or by hand"
    for checkpoint, committed_id in ((store, None), (store, "old"), (None, "old")):
        with pytest.raises(StreamsError, match=by_a_start):
            begin(checkpoint, empty, required=15, committed_id=committed_id)
    assert begin(store, empty).rebuild_reason == f"changelog a-c-changelog[0] {by_a_start}"


def test_a_store_of_the_time_before_a_reset_is_rebuilt_from_the_changelog_that_was_committed() -> (
    None
):
    old = StoreCheckpoint(15, "old", NOW_MS)
    found = begin(old, changelog(0), required=15, committed_id="id")
    assert found.rebuild_reason is not None
    assert found.position == 0


@pytest.mark.parametrize(
    ("position", "start", "required", "begins_at"),
    [(15, 10, 15, 15), (18, 10, 12, 18), (15, 20, 15, 20), (5, 10, 5, 10), (20, 20, 1, 20)],
)
def test_a_store_that_holds_what_was_committed_is_trusted_however_old_and_whatever_is_gone(
    position: int, start: int, required: int, begins_at: int
) -> None:
    found = begin(StoreCheckpoint(position, "id", LONG_AGO_MS), changelog(start), required=required)
    assert found == RestoreStart(begins_at, NOW_MS)


WINDOWS_OF_NOW = ChangelogExpiry(is_windowed=True, stream_time_ms=NOW_MS - DAY_MS)
WINDOWS_OF_LAST_WEEK = ChangelogExpiry(is_windowed=True, stream_time_ms=NOW_MS - 7 * DAY_MS)
WINDOWS_OF_UNKNOWN_TIME = ChangelogExpiry(is_windowed=True)
DECLARED = ChangelogExpiry(is_declared=True)
OLD = StoreCheckpoint(15, "id", LONG_AGO_MS)
CORRUPT_OR_NEW = None


@pytest.mark.parametrize("expiry", [NO_EXPIRY, WINDOWS_OF_LAST_WEEK, WINDOWS_OF_UNKNOWN_TIME])
@pytest.mark.parametrize("checkpoint", [CORRUPT_OR_NEW, StoreCheckpoint(5, "id", NOW_MS), OLD])
def test_a_store_that_needs_records_which_are_gone_is_refused_unless_that_is_accepted(
    checkpoint: StoreCheckpoint | None, expiry: ChangelogExpiry
) -> None:
    with pytest.raises(StreamsError, match=r"begins at 10, and .* its records 0 to 9 were removed"):
        begin(checkpoint, required=19, expiry=expiry)
    accepted = begin(checkpoint, required=19, expiry=expiry, accepts_loss=True)
    assert accepted.position == 10
    assert "records 0 to 9 were removed" in accepted.loss


@pytest.mark.parametrize("expiry", [WINDOWS_OF_NOW, DECLARED])
def test_what_has_expired_or_is_declared_to_be_removed_is_no_loss(expiry: ChangelogExpiry) -> None:
    assert begin(None, required=19, expiry=expiry) == RestoreStart(10, NOW_MS)
    behind = StoreCheckpoint(5, "id", NOW_MS - 5)
    assert begin(behind, required=19, expiry=expiry) == RestoreStart(10, NOW_MS - 5)
    assert begin(OLD, required=19, expiry=expiry).rebuild_reason is not None


def test_a_refusal_says_when_the_windows_were_open() -> None:
    with pytest.raises(StreamsError, match="stream time was 1970-04-04T00:00:00"):
        begin(None, required=19, expiry=WINDOWS_OF_LAST_WEEK)


def versions(
    expired_offset: int | None, *, idle_ms: int = 7 * DAY_MS, is_declared: bool = False
) -> ChangelogExpiry:
    """Return the expiry of a versioned store whose stream time is so far behind the clock."""
    return ChangelogExpiry(
        is_declared=is_declared,
        is_versioned=True,
        is_rewritten=True,
        stream_time_ms=NOW_MS - idle_ms,
        expired_offset=expired_offset,
    )


KEPT = None
"""That of a topic which is not compacted."""


def test_a_versioned_store_is_restored_from_where_its_changelog_was_written_again() -> None:
    log = changelog(kept_ms=KEPT)
    assert begin(None, log, required=19, expiry=versions(10)) == RestoreStart(10, NOW_MS)
    found = begin(OLD, log, required=19, expiry=versions(12))
    assert found == RestoreStart(15, LONG_AGO_MS)
    with pytest.raises(StreamsError, match="its records 0 to 9 were removed"):
        begin(None, log, required=19, expiry=versions(9))


def test_versions_below_the_beginning_are_not_kept_since_their_deletions_may_be_gone() -> None:
    behind = StoreCheckpoint(5, "id", NOW_MS - 5)
    found = begin(behind, changelog(kept_ms=KEPT), required=19, expiry=versions(10))
    assert (found.position, found.since_ms) == (10, NOW_MS)
    assert (
        found.rebuild_reason == "it is at 5 of a-c-changelog[0], and was written again from 10 on"
    )
    accepted = begin(
        behind, changelog(kept_ms=KEPT), required=19, expiry=versions(9), accepts_loss=True
    )
    assert (accepted.position, accepted.rebuild_reason) == (10, None)


@pytest.mark.parametrize(("expired_offset", "kept_ms"), [(None, KEPT), (None, DAY_MS), (0, DAY_MS)])
@pytest.mark.parametrize("checkpoint", [None, StoreCheckpoint(15, "id", NOW_MS - 5)])
def test_a_changelog_of_versions_that_the_wall_clock_compacted_is_refused_after_idle_days(
    checkpoint: StoreCheckpoint | None, expired_offset: int | None, kept_ms: int | None
) -> None:
    log = changelog(0, kept_ms=kept_ms)
    position = 0 if checkpoint is None else 15
    assert begin(checkpoint, log, expiry=versions(expired_offset)).position == position
    current = versions(expired_offset, idle_ms=DAY_MS)
    assert begin(checkpoint, log, required=19, expiry=current).position == position
    idle = versions(expired_offset, idle_ms=DAY_MS + 1)
    with pytest.raises(StreamsError, match=r"compacted by the wall clock.* time was 1970-04-09T23"):
        begin(checkpoint, log, required=19, expiry=idle)
    accepted = begin(checkpoint, log, required=19, expiry=idle, accepts_loss=True)
    assert (accepted.position, accepted.rebuild_reason) == (position, None)
    assert "may lack versions" in accepted.loss
    declared = versions(expired_offset, is_declared=True)
    assert begin(checkpoint, log, required=19, expiry=declared).position == position


def test_a_versioned_store_that_holds_what_was_committed_is_trusted_after_idle_days() -> None:
    log = changelog(0)
    assert begin(OLD, log, required=15, expiry=versions(None)) == RestoreStart(15, NOW_MS)


@pytest.mark.parametrize(
    ("settings", "kept_ms"),
    [
        ({}, DAY_MS),
        ({"cleanup.policy": "compact", "delete.retention.ms": "5"}, 5),
        ({"cleanup.policy": "compact,delete"}, DAY_MS),
        ({"cleanup.policy": "delete", "delete.retention.ms": "5"}, None),
    ],
)
def test_how_long_deletions_are_kept_is_read_from_the_topics_settings(
    settings: dict[str, str], kept_ms: int | None
) -> None:
    assert tombstone_retention_ms(settings) == kept_ms
