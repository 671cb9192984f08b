"""Shrink a case that differs: one end of it, fewer records, fewer steps, plainer records.

Each smaller case is run by both sides again and kept only if they still differ in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.differential.description import Advance, Case, Piped, Step, topics_of

Differs = Callable[[Case], bool]
TIME_LIMIT_S = 60.0


def shrink(case: Case, differs: Differs, time_limit_s: float = TIME_LIMIT_S) -> Case:
    """Return the smallest case found within the time; `case` itself must differ."""
    until = time.monotonic() + time_limit_s
    smaller = True
    while smaller and time.monotonic() < until:
        smaller = False
        for candidates in (_one_end, _fewer_records, _fewer_steps, _plainer):
            found = _first(case, candidates, differs, until)
            while found is not None:
                case, smaller = found, True
                found = _first(case, candidates, differs, until)
    return case


def _first(
    case: Case, candidates: Callable[[Case], Iterator[Case]], differs: Differs, until: float
) -> Case | None:
    for each in candidates(case):
        if time.monotonic() > until:
            return None
        if differs(each):
            return each
    return None


def _one_end(case: Case) -> Iterator[Case]:
    """Yield cases of one step and what it comes from; the last steps first, being the ends."""
    steps = case.topology.steps
    for end in reversed(steps):
        wanted = {end.id}
        for step in reversed(steps):
            if step.id in wanted:
                wanted.update(step.parents)
        if len(wanted) < len(steps):
            yield _tidy(case.with_steps([each for each in steps if each.id in wanted]))


def _fewer_records(case: Case) -> Iterator[Case]:
    """Yield cases with halves, quarters and so on left out, down to single records."""
    count = len(case.input)
    size = count // 2
    while size:
        for begin in range(0, count, size):
            yield case.with_input(case.input[:begin] + case.input[begin + size :])
        size //= 2


def _fewer_steps(case: Case) -> Iterator[Case]:
    steps = case.topology.steps
    for step in reversed(steps):
        left = _without(steps, step)
        if left and any(each.op in ("to", "to_dynamic") or each.args for each in left):
            yield _tidy(case.with_steps(left))
    for step in reversed(steps):
        spliced = _spliced(steps, step)
        if spliced is not None:
            yield _tidy(case.with_steps(spliced))


def _without(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...]:
    """Return the steps without this one and all that come after it."""
    gone = {step.id}
    left = []
    for each in steps:
        if each.id in gone or gone.intersection(each.parents):
            gone.add(each.id)
        else:
            left.append(each)
    return tuple(left)


def _spliced(steps: tuple[Step, ...], step: Step) -> tuple[Step, ...] | None:
    """Return the steps with those after this one attached to its parent.

    None where types do not allow it.
    """
    if len(step.parents) != 1 or step.op in ("branch", "split", "windowed_by", "cogroup"):
        return None
    parent = next(each for each in steps if each.id == step.parents[0])
    if (parent.key, parent.value) != (step.key, step.value):
        return None
    return tuple(
        replace(each, parents=tuple(parent.id if p == step.id else p for p in each.parents))
        for each in steps
        if each is not step
    )


def _tidy(case: Case) -> Case:
    """Drop the records that nobody reads, and steps that nothing comes after or out of."""
    topics = {
        topic for each in case.topology.steps if not each.parents for topic in topics_of(each)
    }
    return case.with_input(
        [each for each in case.input if isinstance(each, Advance) or each.topic in topics]
    )


def _plainer(case: Case) -> Iterator[Case]:
    topology = case.topology
    if topology.optimize:
        yield replace(case, topology=replace(topology, optimize=False))
    if topology.cache_bytes:
        yield replace(case, topology=replace(topology, cache_bytes=0))
    for number, each in enumerate(case.input):
        if isinstance(each, Advance):
            continue
        for plainer in _plainer_records(each):
            yield case.with_input((*case.input[:number], plainer, *case.input[number + 1 :]))


def _plainer_records(record: Piped) -> Iterator[Piped]:
    if record.headers:
        yield replace(record, headers=())
    if isinstance(record.value, str) and record.value not in ("", "a"):
        yield replace(record, value="a")
    if record.key not in (None, "a"):
        yield replace(record, key="a")
