"""Create the internal topics of applications that a streams group is missing."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.api.create_topics import check_replication_factor
from coordinator.errors import Refused
from coordinator.groups.streams.topology import InternalTopic
from coordinator.log.configs import validate_topic_configs
from coordinator.log.data_directory import TopicEntry
from coordinator.log.topics import TopicRegistry

_DEFAULT_FACTOR = -1


def create_internal_topics(
    topics: TopicRegistry, wanted_topics: Sequence[InternalTopic]
) -> dict[str, str]:
    """Create all topics that can be, in one write; return by name why others can not be."""
    planned: list[TopicEntry] = []
    problems: dict[str, str] = {}
    for topic in wanted_topics:
        try:
            topics.check_new_name(topic.name, planned)
            configs = validate_topic_configs(dict(topic.configs))
            check_replication_factor(topic.replication_factor or _DEFAULT_FACTOR)
            planned.append(
                topics.plan_topic_or_refuse(topic.name, topic.partition_count, configs, planned)
            )
        except Refused as refused:
            problems[topic.name] = refused.message
    if planned:
        try:
            topics.create_planned_topics(planned)
        except Refused as refused:
            problems |= {entry.name: refused.message for entry in planned}
    return problems
