"""Test that no cut is taken where a changelog is not the one that offsets were committed with."""

from __future__ import annotations

import pytest

from streams.common.topic_id_hashes import hash_topic_id
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import UserError
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.spark.cuts.application_topics import StoreChangelog
from streams.spark.cuts.topic_ids import refuse_offsets_of_former_changelogs

CHANGELOGS = {"c": StoreChangelog("a-c-changelog", frozenset({"in"}))}
NO_ID = "A" * 22


def committed(position: int, changelog_id: str | None) -> dict[Partition, OffsetAndMetadata]:
    ids = {} if changelog_id is None else {"c": hash_topic_id(changelog_id)}
    text = encode_metadata({"c": position}, changelog_ids=ids)
    return {Partition("in", 0): OffsetAndMetadata(3, text)}


def test_a_changelog_that_was_created_again_gives_no_cut() -> None:
    with pytest.raises(UserError, match="'a-c-changelog' is another topic of the same name"):
        refuse_offsets_of_former_changelogs(
            committed(7, "old"), CHANGELOGS, {"a-c-changelog": "new"}
        )


@pytest.mark.parametrize(
    ("position", "then", "now"),
    [(7, "id", "id"), (0, "old", "new"), (7, None, "new"), (7, "old", NO_ID)],
)
def test_one_that_is_the_same_or_holds_nothing_or_is_not_known_gives_a_cut(
    position: int, then: str | None, now: str
) -> None:
    refuse_offsets_of_former_changelogs(
        committed(position, then), CHANGELOGS, {"a-c-changelog": now}
    )
