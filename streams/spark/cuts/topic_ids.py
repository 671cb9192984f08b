"""Bind a cut to the ids of its topics: offsets of a topic say nothing of a later one of its name.

A broker without topic ids (before Kafka 2.8) gives the id zero, and nothing is compared there.
"""

from __future__ import annotations

from collections.abc import Mapping

from streams.command_lines import format_command
from streams.common.topic_id_hashes import hash_topic_ids, to_topic_id_or_none
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import ConfigError, UserError
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.runtime.offsets.topic_ids import find_offsets_of_former_topics
from streams.spark.cuts.application_topics import StoreChangelog
from streams.spark.cuts.cut import Cut


def refuse_topic_recreated_since_cut(cut: Cut, topic: str, topic_id: str) -> None:
    """Raise ConfigError if a topic, whose id is `topic_id` now, was created again since the cut."""
    then, now = cut.topic_ids.get(topic), topic_id
    if then is not None and now != then:
        raise ConfigError(
            f"{topic} is another topic of the same name than the one that the cut of "
            f"{cut.application_id!r} names (of id {then}, now {now}): it was deleted and created "
            "again since. Take a new cut"
        )


def refuse_offsets_of_former_topics(
    offsets: Mapping[Partition, OffsetAndMetadata], topic_ids: Mapping[str, str]
) -> None:
    """Raise UserError for a committed offset that is of a former topic of the same name."""
    former = find_offsets_of_former_topics(offsets, hash_topic_ids(topic_ids))
    for partition, offset in sorted(former.items()):
        raise UserError(
            f"there is no cut: {partition} is of another topic of the same name than its committed "
            f"offset {offset}: topic {partition.topic!r} was deleted and created again. Start the "
            "application, where offset_out_of_range decides, or reset it"
        )


def refuse_offsets_of_former_changelogs(
    offsets: Mapping[Partition, OffsetAndMetadata],
    store_changelogs: Mapping[str, StoreChangelog],
    topic_ids: Mapping[str, str],
) -> None:
    """Raise UserError where offsets were committed with a former changelog of the same name.

    `store_changelogs` has the changelog of each store by the store's name.
    """
    hashes = hash_topic_ids(topic_ids)
    for held in offsets.values():
        metadata = decode_metadata(held.metadata)
        for store, read in store_changelogs.items():
            then, now = metadata.changelog_id_hash(store), hashes.get(read.changelog)
            if metadata.position_of_store(store) and None not in (then, now) and then != now:
                raise UserError(
                    f"there is no cut: {read.changelog!r} is another topic of the same name than "
                    f"the one in which store {store!r} was committed: it was deleted and created "
                    f"again. Start over with {format_command('group reset')}"
                )


def require_unchanged_topic_ids(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """Return the ids of topics; raise UserError if one has changed from `before` to `after`."""
    for topic, topic_id in sorted(after.items()):
        if before.get(topic, topic_id) != topic_id:
            raise UserError(
                f"{topic} was deleted and created again while the cut was taken: it is another "
                "topic of the same name now. Take the cut again"
            )
    return {topic: each for topic, each in after.items() if to_topic_id_or_none(each) is not None}
