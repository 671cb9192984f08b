"""Look up the topics that a function of the record chooses, before anything is written to them.

A producer takes a record for any topic. Where the topic does not exist it waits for it, and with it
the whole transaction, until that times out. So a topic is looked up when a task writes to it for
the first time, and the production handler decides about the record if there is none.

A broker learns of a new topic with a delay, or creates it when it is asked for it, as a user may
set it (`allow.auto.create.topics`, `auto.create.topics.enable`). So a topic that is not found is
looked up again for most of a second. Records wait meanwhile, of all tasks of the thread: at most a
tenth of the time is spent on that, and beyond it a single answer decides. A topic that was not
found is remembered as missing.
"""

from __future__ import annotations

from collections.abc import Callable

from streams.common.host import Host
from streams.errors import AuthorizationError, UnknownTopic
from streams.runtime.clients.errors import NotReady

_WAITS_S = (0.05, 0.1, 0.2, 0.4)
"""How long to wait before each further look at a topic that was not found."""
_WAIT_SHARE = 0.1
"""The share of the time that may be spent on these waits."""
_REMEMBERED_MAX = 10_000
"""How many missing topics are remembered: names that come from data may be of any number."""


class ChosenTopics:
    """Remembers which of the topics that functions have chosen do not exist, for one thread.

    For `missing_for_ms` a topic is taken for missing without another look (`metadata_max_age_ms`).
    `wait` waits for so many seconds, or less if the thread is to stop.
    Kafka Streams' counterpart is the wait of `max.block.ms` in KafkaProducer.waitOnMetadata.
    """

    def __init__(self, missing_for_ms: int, host: Host, wait: Callable[[float], object]) -> None:
        self._missing_for_s = missing_for_ms / 1_000
        self._monotonic_s = host.monotonic_s
        self._wait = wait
        self._refusals: dict[str, tuple[float, str]] = {}
        """Why each missing topic was refused, and until when that holds."""
        self._next_wait_at_s = host.monotonic_s()

    def require_chosen_topic_exists(
        self, topic: str, fetch_partition_count: Callable[[str], int]
    ) -> None:
        """Raise UnknownTopic if a topic does not exist, or this user has no right to it.

        Raises what `fetch_partition_count` raises, but for these two.
        """
        until_s, reason = self._refusals.get(topic, (0.0, ""))
        if reason:
            if self._monotonic_s() < until_s:
                raise UnknownTopic(reason)
            del self._refusals[topic]
        try:
            self._wait_until_topic_exists_or_raise(topic, fetch_partition_count)
        except (UnknownTopic, AuthorizationError) as error:
            self.refuse_topic_for_a_while(topic, str(error))
            raise UnknownTopic(str(error)) from error

    def refuse_topic_for_a_while(self, topic: str, reason: str) -> None:
        """Take a topic for one that can't be written, for `missing_for_ms` and for this reason."""
        if len(self._refusals) >= _REMEMBERED_MAX:
            self._refusals.clear()
        self._refusals[topic] = self._monotonic_s() + self._missing_for_s, reason

    def _wait_until_topic_exists_or_raise(
        self, topic: str, fetch_partition_count: Callable[[str], int]
    ) -> None:
        """Look a topic up until it is found; raise if it is still missing after the waits."""
        began_s = self._monotonic_s()
        waits_s = list(_WAITS_S) if began_s >= self._next_wait_at_s else []
        while True:
            try:
                fetch_partition_count(topic)
            except (UnknownTopic, NotReady):
                if not waits_s:
                    raise
            else:
                return
            self._wait(waits_s.pop(0))
            now_s = self._monotonic_s()
            self._next_wait_at_s = now_s + (now_s - began_s) / _WAIT_SHARE
