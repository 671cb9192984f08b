"""Find inputs whose keys are not in the partitions to which Kafka's producers write them.

Kafka's producers choose the partition by murmur2 of the key, and so do Millrace's sinks. librdkafka
chooses it by CRC-32 unless it is told otherwise, and programs of other languages follow it. Then a
join of two topics finds no partner for a key that both have, and steps that read one key from two
topics keep it twice; nothing fails. So samples of the keys of inputs of such steps are compared
with murmur2: the first records of each partition, and then one of `SAMPLED_EVERY`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streams.common.partitioning import partition_for_key
from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.runtime.counters import ThreadCounters

log = logging.getLogger(__name__)

FIRST_SAMPLES, SAMPLED_EVERY = 20, 10_000
_WARNED_TOPICS: set[tuple[str, str]] = set()
"""The application and topic of each warning of this process, whose threads share partitions."""


class KeyPlacementCheck:
    """Compares sampled keys with the partitions that Kafka's producers would choose for them.

    `fetch_partition_counts` is called when there are samples of a topic that it was not called for.
    The counters `keys_sampled` and `keys_misplaced` are kept in `counters`.
    """

    def __init__(
        self,
        application_id: str,
        fetch_partition_counts: Callable[[], Mapping[str, int]],
        counters: ThreadCounters,
        warned_topics: set[tuple[str, str]] = _WARNED_TOPICS,
    ) -> None:
        self._application_id = application_id
        self._fetch_partition_counts = fetch_partition_counts
        self._counters = counters
        self._warned_topics = warned_topics
        self._next_ordinals: dict[tuple[str, int], int] = {}
        """By partition the how-manieth record from now on is sampled, from 1; 0 for the first."""
        self._samples: list[tuple[str, int, bytes]] = []
        self._partition_counts: dict[str, int] = {}
        self._found: dict[str, tuple[int, int]] = {}
        """By topic how many keys were sampled, and how many were in another partition."""

    def add_partitions(self, partitions: Iterable[Partition], topics: frozenset[str]) -> None:
        """Sample the keys of those partitions that are of the given topics."""
        for topic, number in partitions:
            if topic in topics and (self._application_id, topic) not in self._warned_topics:
                self._next_ordinals.setdefault((topic, number), 0)

    def sample_batch(self, partition: tuple[str, int], messages: list[Any]) -> None:
        """Take samples of the keys of a batch that was polled of one partition."""
        ordinal = self._next_ordinals.get(partition)
        if ordinal is None:
            return
        if ordinal > len(messages):
            self._next_ordinals[partition] = ordinal - len(messages)
            return
        sampled = messages[ordinal - 1 : ordinal] if ordinal else messages[:FIRST_SAMPLES]
        self._next_ordinals[partition] = max(SAMPLED_EVERY + ordinal - len(messages), 1)
        keys = (message.key() for message in sampled)
        self._samples += ((*partition, key) for key in keys if key is not None)

    def compare_samples_and_count_misplaced(self) -> None:
        """Compare the samples that were taken, and warn once of each topic where some differ.

        Where no broker answers they are compared another time.
        """
        if not self._samples:
            return
        if any(topic not in self._partition_counts for topic, _, _ in self._samples):
            try:
                self._partition_counts |= self._fetch_partition_counts()
            except OutcomeUnknown as error:
                log.info("keys of inputs are compared another time: %s", error)
                return
        samples, self._samples = self._samples, []
        misplaced_topics = set()
        for topic, number, key in samples:
            count = self._partition_counts.get(topic, 0)
            is_misplaced = count > 0 and partition_for_key(key, count) != number
            sampled, misplaced = self._found.get(topic, (0, 0))
            self._found[topic] = sampled + 1, misplaced + is_misplaced
            self._counters.keys_sampled += 1
            self._counters.keys_misplaced += is_misplaced
            if is_misplaced:
                misplaced_topics.add(topic)
        for topic in sorted(misplaced_topics):
            self._warn_once(topic)

    def _warn_once(self, topic: str) -> None:
        """Warn that keys of a topic lie elsewhere, unless a thread of this process has warned."""
        warned = self._application_id, topic
        if warned in self._warned_topics:
            return
        self._warned_topics.add(warned)
        sampled, misplaced = self._found[topic]
        log.warning(
            "%d of %d sampled keys of input %r are not in the partition that murmur2, the "
            "partitioner of Kafka's own producers, chooses for them: what is joined with records "
            "of another topic by key may not meet, and a query finds such a key in no partition "
            "where it is looked for. Set partitioner=murmur2_random in the producers of %r that "
            "use librdkafka, and write the topic anew, or read it through repartition() "
            "(docs/joins.md, partitions)",
            misplaced,
            sampled,
            topic,
            topic,
        )
