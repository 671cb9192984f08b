"""Select the topics that a source reads by an expression: `topics.matching(r"orders-.*")`.

The expression is RE2's (google-re2), which Kafka's brokers and consumers use too, and it has to
match the whole of a topic's name, as Java's `matches`. In a topology a pattern stands where a
topic's name would, as text that no topic can have: `^` and the expression.

An application never reads topics of the brokers by a pattern, nor its own internal ones: a
repartition topic is read by its name, by the tasks behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from streams.errors import TopologyError

__all__ = ["TopicPattern", "matching"]

_MARK = "^"
"""How the text of a pattern begins; no topic's name has this character."""
_BROKERS_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Brokers' own topics, which a pattern never matches (Kafka's `exclude.internal.topics`)."""
_INTERNAL_SUFFIXES = (
    "-changelog",
    "-repartition",
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
_FOREIGN_KEY_TOPIC = re.compile(r"-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic$")
"""Matches the topics of a foreign-key join without a name."""
_LITERAL = re.compile(r"(?:(?:[A-Za-z0-9_-]|\\[.-])(?![?*{]))*")
"""Matches the characters at the beginning of an expression that stand for themselves."""


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Selects the topics whose whole names match an expression of RE2 (Java's `Pattern`).

    With the id of the application that reads by it, no internal topic of this application matches.
    """

    expression: str
    application_id: str = ""

    def __repr__(self) -> str:
        return f"topics.matching({self.expression!r})"

    @property
    def text(self) -> str:
        """Return the text that stands for the pattern where a topic's name would."""
        return f"{_MARK}{self.expression}"

    @property
    def prefix(self) -> str:
        """Return how the names of all topics that match begin, as far as that is easily seen."""
        if "|" in self.expression:
            return ""
        literal = _LITERAL.match(self.expression)
        return literal[0].replace("\\", "") if literal is not None else ""

    def matches_topic(self, topic: str) -> bool:
        """Return whether a topic is one of those that are read by the pattern."""
        match = _compile_expression(self.expression).fullmatch(topic)
        return match is not None and not _is_internal(topic, self.application_id)

    def find_matching(self, topics: Iterable[str]) -> tuple[str, ...]:
        """Return the topics that match this pattern, sorted."""
        return tuple(sorted(filter(self.matches_topic, topics)))


def matching(expression: str) -> TopicPattern:
    """Return the pattern of all topics whose names match an expression, also of later ones.

    For `App.stream` and `TopologyBuilder.add_source`. Raises TopologyError for an expression that
    is not RE2's: it has no look-ahead and no back references, and takes linear time.

    >>> pattern = matching(r"orders-.*")
    >>> pattern.matches_topic("orders-eu"), pattern.matches_topic("my-orders-eu")
    (True, False)
    """
    if not isinstance(expression, str) or not expression:
        raise TopologyError(f"topics.matching takes an expression, got {expression!r}")
    _compile_expression(expression)
    return TopicPattern(expression)


def is_pattern(source: str) -> bool:
    """Return whether a source's text is that of a topic pattern, not the name of a topic."""
    return source.startswith(_MARK)


def parse_pattern(text: str, application_id: str = "") -> TopicPattern:
    """Return the pattern of a text of `TopicPattern.text`, by which this application reads.

    Raises TopologyError.
    """
    return replace(matching(text.removeprefix(_MARK)), application_id=application_id)


def _is_internal(topic: str, application_id: str) -> bool:
    """Return whether a topic is a broker's own, or an internal topic of the application."""
    if topic in _BROKERS_TOPICS:
        return True
    # The names are those of `streams.ledger` and other layers above, which are not imported here.
    if not application_id or not topic.startswith(f"{application_id}-"):
        return False
    return (
        topic.endswith(_INTERNAL_SUFFIXES)
        or _FOREIGN_KEY_TOPIC.search(topic) is not None
        or topic == f"{application_id}-ledger"
    )


@lru_cache(maxsize=256)
def _compile_expression(expression: str) -> Any:
    """Compile an expression. Raises TopologyError with RE2's reason."""
    import re2  # imported here as few applications need it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise TopologyError(
            f"topics.matching({expression!r}) is no expression of RE2: {reason}. RE2 has what "
            "Java's has except look-ahead, look-behind and back references "
            "(https://github.com/google/re2/wiki/Syntax)"
        ) from None
