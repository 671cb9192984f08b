"""End a call that sends offsets of an input which was deleted.

A coordinator refuses such an offset as one of a topic that it does not know yet, so librdkafka 2.16
sends it again until the call's time-out, as Java's producer does. Where the brokers don't have the
topic, the offset is never accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from confluent_kafka import KafkaException, TopicPartition

from streams.errors import InputDeleted
from streams.runtime.clients.refusable_call import CHECK_INTERVAL_S


class TopicsClient(Protocol):
    """Represents a client of librdkafka, which can list the topics of its brokers."""

    def list_topics(self, *, timeout: float) -> Any: ...


FIRST_LOOK_S = 1.0
"""The seconds for which a call has waited when the brokers are first asked.

Most calls are answered in milliseconds, and brokers that start may not know a topic for a moment.
"""
_LOOK_INTERVAL_S = 1.0
_LOOK_TIMEOUT_S = 1.0


def wrap_check_to_raise_if_deleted(
    check: Callable[[], None], offsets: Iterable[TopicPartition], client: TopicsClient
) -> Callable[[], None]:
    """Return a function that is called during one call: it runs `check`, and raises if due.

    `offsets` are what the call sends, `client` is asked for the brokers' topics.

    Raises: InputDeleted once brokers have been without one of the inputs at two looks in a row.
    """
    inputs = {each.topic for each in offsets}
    wait_count, missing_before = 0, frozenset[str]()
    first_look, interval = (round(s / CHECK_INTERVAL_S) for s in (FIRST_LOOK_S, _LOOK_INTERVAL_S))

    def check_call() -> None:
        nonlocal wait_count, missing_before
        check()
        wait_count += 1
        if wait_count < first_look or (wait_count - first_look) % interval:
            return
        topics = _fetch_topics_or_none(client)
        missing = frozenset[str]() if topics is None else frozenset(inputs - topics)
        if deleted := sorted(missing & missing_before):
            raise InputDeleted(explain_deleted_inputs(", ".join(map(repr, deleted))))
        missing_before = missing

    return check_call


def _fetch_topics_or_none(client: TopicsClient) -> set[str] | None:
    """Fetch the names of all topics: brokers create none that is not named in the request."""
    try:
        return set(client.list_topics(timeout=_LOOK_TIMEOUT_S).topics)
    except KafkaException:
        return None


def explain_deleted_inputs(detail: str) -> str:
    """Return the message of an offset that can't be committed, with a name or an answer."""
    return (
        "an input is not on the brokers any more: it was deleted, and its offset can't be "
        f"committed: {detail}"
    )
