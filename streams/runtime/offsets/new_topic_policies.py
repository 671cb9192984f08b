"""Choose where to begin in a topic that was deleted and made again while it was read.

`offset_out_of_range` decides, except for topics that match a pattern: these come and go, so another
topic of the name is new, and is read from its first record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from streams.settings.offset_reset import OffsetResetPolicy, ResetStrategy
from streams.topics import TopicPattern

_FROM_FIRST_RECORD = OffsetResetPolicy(ResetStrategy.EARLIEST)


class NewTopicPolicies:
    """Holds the patterns of topics that come and go, and the policy for all other topics."""

    def __init__(
        self, out_of_range_policy: OffsetResetPolicy, patterns: Collection[TopicPattern]
    ) -> None:
        self._out_of_range_policy = out_of_range_policy
        self._patterns = patterns

    def find_policy(self, topic: str) -> OffsetResetPolicy:
        """Return the policy for a topic that was deleted and created again."""
        return _FROM_FIRST_RECORD if self._is_read_by_pattern(topic) else self._out_of_range_policy

    def describe_policy(self, topic: str) -> str:
        """Return what decides where a recreated topic is read from, for people."""
        if self._is_read_by_pattern(topic):
            return "its first record: the topics of a pattern come and go"
        return f"offset_out_of_range={self._out_of_range_policy.strategy.value}"

    def find_vanished_topics(
        self, topics: Iterable[str], topic_ids: Mapping[str, int]
    ) -> list[str]:
        """Return the topics that match a pattern and are not there, by the ids of topics now."""
        return sorted({t for t in topics if t not in topic_ids and self._is_read_by_pattern(t)})

    def _is_read_by_pattern(self, topic: str) -> bool:
        return any(pattern.matches_topic(topic) for pattern in self._patterns)
