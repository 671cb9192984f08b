"""Test that a processor wrapper around every step of random topologies changes nothing.

Each step runs another way then: its function forwards through the context of a processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams import Processor, Record
from streams.errors import TopologyError
from tests.differential import ours
from tests.differential.generator import generate

SEEDS = range(150)


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
