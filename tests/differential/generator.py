"""Generate a case from a seed: some operators, and records that are hard for them.

Records come out of order and late, with equal timestamps, and without keys and values.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

from tests.differential.description import Advance, Case, Piped
from tests.differential.draft import Draft
from tests.differential.known import moves_a_single_repartition
from tests.differential.productions import PRODUCTIONS

KEYS = ("a", "a", "b", "t", "b0", "b1", "ä")
WORDS = ("a", "b", "b0", "be", "to", "tea", "äh")
SCALES = (1, 1, 1, 1, 1_000, 60_000)
TASK_TIME_SHARE = 0.12


def generate(seed: int, operators: Collection[str] = PRODUCTIONS, first: str | None = None) -> Case:
    """Generate the case of that seed from these productions; `first` is in it."""
    rng = Random(seed)
    draft = Draft(rng, rng.choice(SCALES))
    draft.cache_bytes = 0 if rng.random() < 0.4 else 10 * 1024 * 1024
    draft.optimize = rng.random() < 0.3
    timed = [each for each in operators if PRODUCTIONS[each].needs_task_time]
    others = [each for each in operators if not PRODUCTIONS[each].needs_task_time]
    if first in timed or (first is None and timed and rng.random() < TASK_TIME_SHARE):
        # Kafka Streams' driver has one task for all sub-topologies: its stream time is ours only
        # where there is one of them.
        draft.source_stream("string")
        draft.alone = True
        PRODUCTIONS[first or rng.choice(timed)].make(draft)
        others = [each for each in others if PRODUCTIONS[each].stays]
        for name in _some(rng, others, rng.randint(0, 3)):
            PRODUCTIONS[name].make(draft)
    else:
        if first is not None:
            PRODUCTIONS[first].make(draft)
        for name in _some(rng, others, rng.choice((1, 1, 2, 3, 4, 6))):
            PRODUCTIONS[name].make(draft)
    topology = draft.topology()
    if moves_a_single_repartition(topology):
        topology = replace(topology, optimize=False)
    # Ticks of the wall clock are records too: their time is that of the others.
    return Case(topology, _records(draft), seed, wall_clock_ms=100 * draft.scale)


def _some(rng: Random, names: Collection[str], count: int) -> list[str]:
    listed = list(names)
    if not listed:
        return []
    return rng.choices(listed, [PRODUCTIONS[each].weight for each in listed], k=count)


def _records(draft: Draft) -> tuple[Piped | Advance, ...]:
    rng, scale = draft.rng, draft.scale
    now = 100 * scale
    topics = list(draft.topics)
    ticks = any(each.args.get("processor") == "wall_ticks" for each in draft.steps)
    versioned = any((each.args.get("store") or {}).get("history_ms") for each in draft.steps)
    times: set[int] = set()
    records: list[Piped | Advance] = []
    for _ in range(rng.randint(4, 12 + 10 * len(topics))):
        if ticks and rng.random() < 0.2:
            records.append(Advance(rng.choice((10, 60, 500))))
        what = rng.random()
        if what < 0.5:
            now += rng.randint(0, 6) * scale
        elif what < 0.55:
            now += rng.randint(20, 80) * scale
        time = now
        if what > 0.9:
            time -= rng.randint(15, 60) * scale
        elif what > 0.7:
            time -= rng.randint(1, 15) * scale
        topic = rng.choice(topics)
        record = _record(rng, topic, draft.topics[topic][1], max(0, time))
        while versioned and record.value is None and record.timestamp_ms in times:
            # Kafka Streams forgets a deletion that has the time of what it deletes.
            record = replace(record, timestamp_ms=record.timestamp_ms + 1)
        times.add(record.timestamp_ms)
        records.append(record)
    if rng.random() < 0.6:  # all windows close
        for topic in topics:
            now += 200 * scale
            records.append(_record(rng, topic, draft.topics[topic][1], now))
    return tuple(records)


def _record(rng: Random, topic: str, value: str, time_ms: int) -> Piped:
    key = None if rng.random() < 0.06 else rng.choice(KEYS)
    given: str | int | None
    if rng.random() < 0.12:
        given = None
    elif value == "int64":
        given = rng.randint(-3, 9)
    else:
        given = " ".join(rng.choices(WORDS, k=rng.choice((0, 1, 1, 1, 2, 3))))
    headers: tuple[tuple[str, str | None], ...] = ()
    if rng.random() < 0.2:
        headers = tuple(
            (rng.choice(("h", "i")), rng.choice(("1", "", None))) for _ in range(rng.randint(1, 2))
        )
    return Piped(topic, key, given, time_ms, headers)
