"""Test that random heartbeats are answered as Kafka 4.3 answers them, call by call.

Kafka 4.3 was asked once (`python -m tests.conformance.earlier_streams_groups --keep`). A history is
compared up to the first call that 4.3 answers otherwise, on purpose: this broker does as 4.4 there
(docs/decisions/0104).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.brokers import Broker
from tests.conformance.earlier_streams_groups import KEPT, name_topics
from tests.conformance.kept_histories import compare_histories
from tests.conformance.test_random_streams_groups import STEPS, StreamsHistory
from tests.conformance.wire import Client

HISTORIES: list[dict[str, Any]] = json.loads(KEPT.read_text())
CALLS_MIN, WHOLE_MIN = 1_500, 14


def test_the_histories_are_worth_comparing() -> None:
    """Check that they have many calls, and that most are equal to their end."""
    lengths = [len(each["lines"]) for each in HISTORIES]
    assert sum(lengths) >= CALLS_MIN
    assert sum(length == STEPS for length in lengths) >= WHOLE_MIN


def test_an_answer_that_differs_is_seen() -> None:
    seed, expected = HISTORIES[0]["seed"], HISTORIES[0]["lines"]
    with pytest.raises(AssertionError, match=f"{seed=} step={len(expected) - 1}"):
        compare_histories(expected, [*expected[:-1], "another answer"], f"{seed=}")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kept", HISTORIES, ids=lambda each: str(each["seed"]))
def test_random_heartbeats_are_answered_as_kafka_4_3_answers_them(
    broker: Broker,
    connect: Callable[[], Client],
    group: str,
    kept: dict[str, Any],
) -> None:
    if broker.kind != "embedded":
        pytest.skip("it compares the embedded broker with what Kafka 4.3 has answered")
    seed, expected = kept["seed"], kept["lines"]
    history = StreamsHistory(connect(), seed, group, name_topics(seed), is_for_4_3=True)
    history.run()
    compare_histories(expected, history.lines[: len(expected)], f"{seed=} of Kafka 4.3")
