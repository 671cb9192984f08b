"""Test whether a store resumes its changelog or is rebuilt, by position, topic id and age."""

from __future__ import annotations

import pytest

from state.store import StoreCheckpoint
from streams import StreamsError
from streams.common.topic_partitions import Partition
from streams.runtime.changelog import (
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
    transactions: bool = True,
) -> RestoreStart:
    return find_restore_start(
        "c", checkpoint, of or changelog(), required_offset=required, is_transactional=transactions
    )


def test_a_store_that_was_never_written_begins_at_the_start() -> None:
    assert begin(None) == RestoreStart(10, NOW_MS)


@pytest.mark.parametrize("position", [10, 15, 20])
def test_a_store_inside_its_changelog_goes_on_where_it_is(position: int) -> None:
    assert begin(StoreCheckpoint(position, "id", NOW_MS - 5)) == RestoreStart(position, NOW_MS - 5)


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
    assert rebuilt or found == RestoreStart(position, LONG_AGO_MS)


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


def test_a_changelog_made_again_is_refused_where_offsets_rest_on_the_old_one() -> None:
    texts = set()
    for required in (1, 20, 21):
        with pytest.raises(StreamsError, match="If the application was reset, remove") as raised:
            begin(StoreCheckpoint(15, "old", NOW_MS), required=required)
        texts.add(str(raised.value))
    assert len(texts) == 1, "a standby that waits would log each"


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
