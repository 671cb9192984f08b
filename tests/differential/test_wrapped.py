"""Test that a processor wrapper around every step of random topologies changes nothing.

Each step runs another way then: its function forwards through the context of a processor. Kafka
Streams hands its wrapper the same steps, which are called as often.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from streams import Processor, Record
from streams.errors import TopologyError
from tests.differential import ours
from tests.differential.generator import generate
from tests.differential.known import differs_on_purpose
from tests.differential.peer import Peer

SEEDS = range(150)
KEY_FILTER = re.compile("-repartition-filter$|^KSTREAM-FILTER-[0-9]+$")
COUNTED_SEEDS = range(150, 270)


def wrap(step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that makes processors which hand all on."""
    if not isinstance(create_processor(), Processor):
        raise TopologyError(f"step {step!r} is handed over as no processor")

    class HandsOn(Processor[Any, Any, Any, Any]):
        def __init__(self) -> None:
            self.inner = create_processor()
            self.stores = self.inner.stores  # type: ignore[misc]  # of this instance

        def init(self, context: Any) -> None:
            self.inner.context = context
            self.inner.init(context)

        def process(self, record: Record[Any, Any]) -> None:
            self.inner.process(record)

        def close(self) -> None:
            self.inner.close()

    return HandsOn


def test_a_wrapper_around_every_step_changes_no_result() -> None:
    compared = 0
    for seed in SEEDS:
        case = generate(seed)
        plain = ours.run(case)
        if "error" not in plain:
            assert ours.run(case, processor_wrapper=wrap) == plain, f"{seed=}"
            compared += 1
    assert compared > len(SEEDS) * 0.9


class CountedCalls:
    """Counts how often each wrapped step is called."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def wrap(self, step: str, create_processor: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function that makes processors which count their records and hand them on."""
        hands_on, calls = wrap(step, create_processor), self.calls
        calls[step] = 0

        class Counted(hands_on):  # type: ignore[misc, valid-type]
            def process(self, record: Record[Any, Any]) -> None:
                calls[step] += 1
                super().process(record)

        return Counted


def match_calls(ours: Mapping[str, int], theirs: Mapping[str, int]) -> bool:
    """Return whether steps are called as often on both sides.

    Those that have one name on both sides are compared by it; generated names differ. In front of a
    repartition topic Kafka Streams has a step of its own that drops records without a key.
    """
    theirs = {n: calls for n, calls in theirs.items() if not KEY_FILTER.search(n)}
    ours = {n: calls for n, calls in ours.items() if not KEY_FILTER.search(n)}
    common = ours.keys() & theirs.keys()
    return all(ours[name] == theirs[name] for name in common) and sorted(
        calls for name, calls in ours.items() if name not in common
    ) == sorted(calls for name, calls in theirs.items() if name not in common)


def test_each_wrapped_step_is_called_as_often_as_in_kafka_streams(peer: Peer) -> None:
    called: Counter[str] = Counter()
    for seed in COUNTED_SEEDS:
        case = generate(seed)
        theirs = peer.ask({**case.as_json(), "count_calls": True})
        if "error" in theirs or differs_on_purpose(case.topology):
            continue
        counted = CountedCalls()
        answer = ours.run(case, processor_wrapper=counted.wrap)
        assert "error" not in answer, f"{seed=} {answer}"
        assert match_calls(counted.calls, theirs["calls"]), f"{seed=} {theirs} {counted.calls}"
        called.update(counted.calls)
    assert called.total() > 1_000
