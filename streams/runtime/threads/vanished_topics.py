"""Notice soon that a topic which matches a pattern was deleted, without another look at brokers.

A consumer sees it at its next fetch. The thread then joins its group again, with the topics that
there are (`StreamsPartitionAssignor.fetch_source_topics_or_last_known`), and the leader assigns
tasks without it: until then the task that reads it can't start after a failure. A topic that
appears is noticed by the leader alone, every `metadata_max_age_ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from streams.runtime.clients.interfaces import ConsumerClient
from streams.topics import TopicPattern

_CHECK_INTERVAL_S = 1.0
"""How often at most the thread acts on a topic that the consumer misses: it may be stale."""


class VanishedTopicCheck:
    """Tells whether an assigned topic that matches one of `patterns` is gone, for one thread."""

    def __init__(
        self,
        patterns: Collection[TopicPattern],
        consumer: ConsumerClient,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._patterns = patterns
        self._consumer = consumer
        self._monotonic_s = monotonic_s
        self._next_at_s = 0.0

    def try_take_due_check(self, partitions: Iterable[tuple[str, int]]) -> bool:
        """Return whether inputs are to be looked at now, for one of the assigned partitions."""
        if not self._patterns or not (missing := self._consumer.missing_topics):
            return False
        if self._monotonic_s() < self._next_at_s:
            return False
        gone = {topic for topic, _ in partitions}.intersection(missing)
        if not any(pattern.matches_topic(topic) for topic in gone for pattern in self._patterns):
            return False
        self._next_at_s = self._monotonic_s() + _CHECK_INTERVAL_S
        return True
