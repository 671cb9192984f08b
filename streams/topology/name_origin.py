"""Trace what leads to a store or a repartition topic: the inputs and the steps on the way.

By this a step is recognized when its generated name has another number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streams.topology.description import DescribedStep, TopologyDescription

_NUMBER = re.compile(r"-\d{10}(?!\d)")
"""The number that the DSL appends to a generated name."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Represents the inputs and the steps that lead to a store or a repartition topic.

    `inputs`: topics that others write. `steps`: what is done on the way, and names without their
    numbers.
    """

    inputs: frozenset[str]
    steps: tuple[str, ...]

    def __str__(self) -> str:
        """Return the inputs and the steps as a chain, for messages."""
        return " > ".join([", ".join(sorted(self.inputs)) or "nothing", *self.steps])


def is_generated_name(name: str) -> bool:
    """Return whether the DSL made this name, from the number of a step."""
    return _NUMBER.search(name) is not None


def strip_step_number(name: str) -> str:
    """Return a generated name without the number of its step."""
    return _NUMBER.sub("", name)


def find_lineages(description: TopologyDescription) -> dict[str, Lineage]:
    """Return the lineage of each store and each repartition topic, by its name."""
    steps = [step for sub in description.subtopologies for step in sub.steps]
    ancestors = _LineageTracer(steps)
    ends: dict[str, list[DescribedStep]] = {}
    for step in steps:
        for store in step.stores:
            ends.setdefault(store, []).append(step)
        if step.kind == "sink" and step.internal and step.topic:
            ends.setdefault(step.topic, []).append(step)
    return {name: ancestors.trace_lineage(users) for name, users in ends.items()}


class _LineageTracer:
    """Walks upstream through the steps of a topology."""

    def __init__(self, steps: list[DescribedStep]) -> None:
        self._steps = {step.name: step for step in steps}
        self._writers: dict[str, list[DescribedStep]] = {}
        for step in steps:
            if step.kind == "sink" and step.internal and step.topic:
                self._writers.setdefault(step.topic, []).append(step)

    def trace_lineage(self, end_steps: list[DescribedStep]) -> Lineage:
        """Trace which topics and steps feed the store or topic that `end_steps` use or write.

        Goes upstream, through repartition topics, each step once.
        """
        inputs: set[str] = set()
        names: list[str] = []
        seen: set[str] = set()
        ahead = list(end_steps)
        while ahead:
            step = ahead.pop()
            if step.name in seen:
                continue
            seen.add(step.name)
            names.append(step.operator or strip_step_number(step.name))
            ahead += [self._steps[name] for name in step.predecessors]
            if step.kind == "source" and step.topic:
                if writers := self._writers.get(step.topic):
                    ahead += writers
                else:
                    inputs.add(step.topic)
        return Lineage(frozenset(inputs), tuple(reversed(names)))
