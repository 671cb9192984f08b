"""Recognize the topologies in which Millrace differs from Kafka Streams on purpose.

The generator makes none of them, and no case that differs is made smaller to one of them. `named/`
keeps an example of each, in which both must go on differing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.differential.description import Step, Topology

Origins = Mapping[str, frozenset[str]]
"""Where the records come from that change a table: for each origin, the steps with a cached store
that every change from there has left before it arrives."""

_AGGREGATES = ("count", "reduce", "aggregate")
_KEPT = ("table", "to_table", "join_foreign", *_AGGREGATES)
"""Steps whose results are kept, and cached, without a word about a store."""
_TOPICS = ("repartition", "group_by", "join_foreign")
"""Steps whose records come out of a topic of their own."""
_KEY_CHANGING = ("map", "flat_map", "select_key", "process")
_PASSING = ("peek", "filter", "filter_not", "split", "branch")
"""Steps of a stream that pass their records on as they are."""
_KEY_KEEPING = (*_PASSING, "map_values", "flat_map_values", "process_values", "join_global")


def differs_on_purpose(topology: Topology) -> bool:
    """Tell whether any step of the topology is one of these."""
    return moves_a_single_repartition(topology) or any(
        joins_changes_of_one_commit(topology, *step.parents)
        for step in topology.steps
        if step.op == "join_tables"
    )


def joins_changes_of_one_commit(topology: Topology, left: str, right: str) -> bool:
    """Tell whether one record may change both tables before a commit.

    Then one is joined while a change of the other waits in a cache (docs/decisions/0022).
    """
    return _meets_cached_change(topology, left, right) or _meets_cached_change(
        topology, right, left
    )


def _meets_cached_change(topology: Topology, changed: str, read: str) -> bool:
    origins = origins_of(topology, changed)
    for store in _stores_read(topology, read):
        if _is_cached(topology, topology.step(store)):
            shared = origins.keys() & origins_of(topology, store).keys()
            if any(store not in origins[origin] for origin in shared):
                return True
    return False


def origins_of(topology: Topology, step_id: str) -> Origins:
    """Find the origins of the changes of a step.

    A repartition topic is one: its records are processed, and committed, on their own.
    """
    step = topology.step(step_id)
    if not step.parents or step.op in _TOPICS:
        found = {step.id: frozenset[str]()}
    else:
        found = {}
        for parent in step.parents:
            for origin, left in origins_of(topology, parent).items():
                found[origin] = found.get(origin, left) & left
    match step.args.get("processor"):
        case "wall_ticks":
            found["the wall clock"] = frozenset()
        case "stream_ticks" | "hold":
            found["stream time"] = frozenset()
    if _is_cached(topology, step):
        return {origin: left | {step.id} for origin, left in found.items()}
    return found


def _stores_read(topology: Topology, step_id: str) -> set[str]:
    """Find the steps whose stores are read when the table is looked up."""
    step = topology.step(step_id)
    if step.op in _KEPT or step.args.get("store") is not None:
        return {step.id}
    return set().union(*(_stores_read(topology, parent) for parent in step.parents))


def _is_cached(topology: Topology, step: Step) -> bool:
    if topology.cache_bytes == 0 or "processor" in step.args:
        return False
    store = step.args.get("store")
    if store is None:
        return step.op in _KEPT
    return bool(store.get("caching"))


def moves_a_single_repartition(topology: Topology) -> bool:
    """Tell whether Kafka Streams visibly moves a single repartition topic when it optimizes.

    It is moved to before a step that something else follows too, which then misses the records
    without a key; or behind another child of the same step with which it is joined or merged again,
    whose records then come first (docs/decisions/0033).
    """
    if not topology.optimize:
        return False
    moved: dict[str, list[tuple[Step, list[Step]]]] = {}
    for reader, stream in _repartitioned_streams(topology):
        way = []
        while stream.op in _PASSING:
            way.append(stream)
            stream = topology.step(stream.parents[0])
        moved.setdefault(stream.id, []).append((reader, way))
    for origin, found in moved.items():
        if len(found) > 1:
            continue
        ((reader, way),) = found
        if any(len(topology.children(step.id)) > 1 for step in way):
            return True
        behind = _reached(topology, reader)
        if sum(bool(behind & _reached(topology, each)) for each in topology.children(origin)) > 1:
            return True
    return False


def _reached(topology: Topology, step: Step) -> set[str]:
    """Find the step itself and all that come after it."""
    return {step.id}.union(*(_reached(topology, each) for each in topology.children(step.id)))


def _repartitioned_streams(topology: Topology) -> Iterator[tuple[Step, Step]]:
    """Find the streams that get a repartition topic because their keys have changed.

    Each comes as often as it gets one, with the steps that read it.
    """
    for step in topology.steps:
        streams: list[str] = []
        if step.op in _AGGREGATES:
            streams = [
                group.parents[0] for group in _groups(topology, step) if group.op == "group_by_key"
            ]
        elif step.op == "join_stream":
            streams = list(step.parents)
        elif step.op in ("join_table", "to_table"):
            streams = [step.parents[0]]
        for each in streams:
            if _has_changed_keys(topology, topology.step(each)):
                yield step, topology.step(each)


def _groups(topology: Topology, step: Step) -> Iterator[Step]:
    for parent in map(topology.step, step.parents):
        if parent.op in ("windowed_by", "cogroup"):
            yield from _groups(topology, parent)
        else:
            yield parent


def _has_changed_keys(topology: Topology, stream: Step) -> bool:
    if stream.op in _KEY_CHANGING:
        return True
    if stream.op == "merge":
        return any(_has_changed_keys(topology, topology.step(each)) for each in stream.parents)
    return stream.op in _KEY_KEEPING and _has_changed_keys(
        topology, topology.step(stream.parents[0])
    )
