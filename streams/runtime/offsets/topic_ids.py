"""Tell an input topic from a later one of the same name, by the topic's id.

A committed offset counts the records of one topic. Where the topic was deleted and made again, the
same number is another place, or none: the first records of the new topic would be skipped without a
word if it were taken. So committed offsets name the ids of their task's inputs, as hashes of 63
bits (`streams.runtime.offsets.offset_metadata`). Kafka has ids since 2.8 (KIP-516); a broker
without them says zero, and nothing is compared there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from streams.common.topic_id_hashes import hash_topic_ids
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.errors import OutcomeUnknown
from streams.runtime.clients.interfaces import AdminClient, ConsumerClient
from streams.runtime.offsets.offset_metadata import decode_metadata

log = logging.getLogger(__name__)

_RETRY_S = 1.0
_MISSING_S = 2.0
"""The seconds after which a topic that brokers do not have is taken for deleted."""


def fetch_topic_id_hashes(admin: AdminClient, topics: Iterable[str]) -> dict[str, int]:
    """Fetch the hash of the id of each topic; topics without an id are left out."""
    return hash_topic_ids(admin.fetch_topic_ids(sorted(set(topics))))


def find_offsets_of_former_topics(
    committed: Mapping[Partition, OffsetAndMetadata], topic_ids: Mapping[str, int]
) -> dict[Partition, int]:
    """Return the committed offsets whose topic had another id at the commit.

    `topic_ids` are the hashes of the topics' ids now. An offset or a topic without one is taken as
    it is.
    """
    former = {}
    for partition, held in committed.items():
        now = topic_ids.get(partition.topic)
        then = decode_metadata(held.metadata).topic_id_hash(partition.topic)
        if None not in (now, then) and now != then:
            former[partition] = held.offset
    return former


class TopicIdCheck:
    """Finds, while tasks run, that an input was deleted and recreated.

    A consumer goes on in the new topic at the position that it had in the one before, and brokers
    say nothing of it while that is within the range. But it fetches by the topic's id (since Kafka
    3.1), and notes the id that it sees before the first record is polled (`check_seen_ids`). For
    older brokers, and a topic of which nothing comes, the ids are also fetched every `interval_s`,
    for all tasks of a thread in one request. `fetch_topic_ids` fetches the hashes of ids,
    `on_change` is called with the topics that were made again.
    """

    def __init__(
        self,
        fetch_topic_ids: Callable[[Collection[str]], Mapping[str, int]],
        monotonic_s: Callable[[], float],
        *,
        interval_s: float,
        on_change: Callable[[Collection[str]], None],
    ) -> None:
        self._fetch_topic_ids = fetch_topic_ids
        self._monotonic_s = monotonic_s
        self._interval_s = interval_s
        self._on_change = on_change
        self._check_at_s = monotonic_s() + interval_s
        self._missing_since_s: dict[str, float] = {}
        """Since when the consumer sees that brokers do not have an input."""
        self._warned: set[str] = set()

    def find_positions_out_of_range(
        self, consumer: ConsumerClient, list_task_topic_ids: Callable[[], list[Mapping[str, int]]]
    ) -> dict[Partition, int]:
        """Return the partitions whose position is out of range, of topics that are still the same.

        Checks what the consumer has seen of its topics with a poll, and the ids if they are due.
        Warns of a topic that is gone. Raises OutcomeUnknown as `check_now` does.
        """
        self.check_topics(consumer, list_task_topic_ids)
        out_of_range = consumer.pop_out_of_range_positions()
        if out_of_range:
            self.check_now(list_task_topic_ids())
        elif self._monotonic_s() >= self._check_at_s:
            self.check_if_due(list_task_topic_ids())
        return out_of_range

    def check_topics(
        self, consumer: ConsumerClient, list_task_topic_ids: Callable[[], list[Mapping[str, int]]]
    ) -> None:
        """Compare the ids that the consumer has seen since its last poll, and warn of lost topics.

        No broker is asked. Raises OutcomeUnknown as `check_now` does.
        """
        if seen := consumer.pop_seen_topic_ids():
            self.check_seen_ids(list_task_topic_ids(), seen)
        if self._missing_since_s or consumer.missing_topics:
            self._warn_of_missing_topics(consumer.missing_topics, list_task_topic_ids())

    def _warn_of_missing_topics(
        self, missing: Collection[str], known: Iterable[Mapping[str, int]]
    ) -> None:
        """Warn once of an input that brokers have not had for `_MISSING_S`; it was there before.

        Brokers may not know a topic for a moment, as they start.
        """
        now_s = self._monotonic_s()
        before = self._missing_since_s
        inputs = {topic for ids in known for topic in ids}.intersection(missing)
        self._missing_since_s = {topic: before.get(topic, now_s) for topic in inputs}
        self._warned &= inputs
        for topic in sorted(inputs - self._warned):
            if now_s - self._missing_since_s[topic] >= _MISSING_S:
                self._warned.add(topic)
                log.warning(
                    "input %r is not on the brokers any more: it was deleted. No record comes from "
                    "it, and one that is created again is another topic "
                    "(docs/what-happens-when.md)",
                    topic,
                )

    def check_if_due(self, task_topic_ids: Iterable[Mapping[str, int]]) -> None:
        """Check the ids if an interval has passed. Raises OutcomeUnknown without an answer.

        Where no broker answers, or a topic is gone, they are looked at again soon.
        """
        now_s = self._monotonic_s()
        if now_s < self._check_at_s:
            return
        self._check_at_s = now_s + self._interval_s
        known = list(task_topic_ids)
        try:
            topic_ids = self._fetch_current_ids(known)
        except OutcomeUnknown as error:
            self._check_at_s = now_s + min(self._interval_s, _RETRY_S)
            log.info("ids of inputs are looked at another time: %s", error)
            return
        self._raise_if_ids_changed(known, topic_ids)

    def check_now(self, task_topic_ids: Iterable[Mapping[str, int]]) -> None:
        """Fetch the ids of all inputs and compare them with those at which the tasks started.

        Raises: OutcomeUnknown where one has changed, so that the tasks start over from what is
        committed, and `offset_out_of_range` decides; or where no broker answers.
        """
        known = list(task_topic_ids)
        self._raise_if_ids_changed(known, self._fetch_current_ids(known))

    def check_seen_ids(
        self, task_topic_ids: Iterable[Mapping[str, int]], seen: Mapping[str, str]
    ) -> None:
        """Compare the ids that the consumer has seen with those at which the tasks started.

        `seen` are ids by topic. Raises OutcomeUnknown as `check_now` does; no broker is asked.
        """
        self._raise_if_ids_changed(list(task_topic_ids), hash_topic_ids(seen))

    def _fetch_current_ids(self, known: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
        return self._fetch_topic_ids({topic for ids in known for topic in ids})

    def _raise_if_ids_changed(
        self, known: Iterable[Mapping[str, int]], now: Mapping[str, int]
    ) -> None:
        changed = {t for ids in known for t, then in ids.items() if now.get(t, then) != then}
        if changed:
            self._on_change(changed)
            names = ", ".join(map(repr, sorted(changed)))
            raise OutcomeUnknown(f"input {names} was deleted and created again")
