"""Define the topologies that the workers of a simulation run.

Input values are `<key>|<number>`, the numbers of a key 1, 2, 3 and so on, so that the output
can be compared with what it should be.

    copy       each value as it is
    count      how many values a key has, by the product's own operator
    collect    the list of all values of a key, changed in place, at each record or once a commit
    tick       the same by a processor, and beside it a number for each task that grows as time goes
               by: what it writes and forwards is of no input
    regroup    as collect, by another key, through a repartition topic
    lines      collect by a processor, and beside it each value of a second input as it is; every
               second life of a worker has the two lines in the other order

Of these time decides what comes out, so the records bear times of their own:

    closing    how many values a key has in each window, when the window closes
    suppress   the same by a table that is updated and held back until then
    outer      two inputs, whose keys are their values: each with that of the other, or alone
"""

from __future__ import annotations

from typing import Any

from streams import (
    App,
    Processor,
    ProcessorContext,
    Record,
    Store,
    serdes,
    until_window_closes,
    windows,
)
from streams.graph.nodes import (
    Binding,
    ForwardRecord,
    Graph,
    Node,
    Operator,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StoreSpec,
)
from streams.graph.views import StoredView
from streams.operators.count import count_records
from streams.operators.to_stream import forward_as_records
from streams.serdes import Serde
from streams.topology.build import Topology, build_topology

APPLICATION = "app"
INPUT, OTHER, OUTPUT, COPIES = "in", "other", "out", "copies"
STORE = "seen"


def changelog_of(store: str) -> str:
    return f"{APPLICATION}-{store}-changelog"


CHANGELOG = changelog_of(STORE)
REPARTITION = f"{APPLICATION}-{STORE}-repartition"
GROUPS = 3
TIMED = ("closing", "suppress", "outer")
WINDOW_MS = 300
WITHIN_MS = GRACE_MS = 600_000
"""The join's window, longer than a history, so that the order of records has no effect."""
KEPT_MS = 30 * 86_400_000


def group_of(value: str) -> str:
    """Return the key by which a value is regrouped; a third of each key's numbers share it."""
    return f"g{int(value.partition('|')[2]) % GROUPS}"


def collect(*, caching: bool) -> Operator:
    """Return an operator whose value is one list that is changed in place again and again."""

    def bind(at: Binding) -> ForwardRecord:
        store = at.context.get_store(STORE)
        downstream = at.downstream
        changed: dict[str, int] = {}

        def process(key: Any, value: Any, timestamp_ms: int) -> None:
            seen = store.get(key)
            if seen is None:
                seen = []
            seen.append(value)
            store.put(key, seen, timestamp_ms)
            if caching:
                changed[key] = timestamp_ms
            else:
                downstream(key, seen, timestamp_ms)

        def flush() -> None:
            for key, timestamp_ms in changed.items():
                downstream(key, store.get(key), timestamp_ms)
            changed.clear()

        if caching:
            at.context.commit_callbacks.append(flush)
        return process

    return bind


def regroup(at: Binding) -> ForwardRecord:
    def process(key: Any, value: Any, timestamp_ms: int) -> None:
        at.downstream(group_of(value), value, timestamp_ms)

    return process


TICK = "#"
"""The prefix of ticks' keys."""


class Tick(Processor[str, str, str, list[Any]]):
    def init(self, context: ProcessorContext[str, list[Any]]) -> None:
        self._store = context.store(STORE)
        self._key = TICK + context.task_id
        context.schedule(150, self._tick, clock="wall")

    def process(self, record: Record[str, str]) -> None:
        seen = self._store.get(record.key) or []
        seen.append(record.value)
        self._store.put(record.key, seen)
        self.context.forward(record.with_value(seen))

    def _tick(self, now_ms: int) -> None:
        ticks = self._store.get(self._key) or [0]
        ticks[0] += 1
        self._store.put(self._key, ticks)
        self.context.forward(Record(self._key, ticks, now_ms))


def _ticking(*, persistent: bool) -> Topology:
    keep = Store.persistent if persistent else Store.in_memory
    app = App(APPLICATION)
    app.stream(INPUT, key=serdes.string, value=serdes.string).process(
        Tick,
        stores=[keep(STORE, key=serdes.string, value=serdes.json)],
        key=serdes.string,
        value=serdes.json,
    ).to(OUTPUT)
    return app.topology()


class Collect(Processor[str, str, str, list[Any]]):
    def process(self, record: Record[str, str]) -> None:
        store = self.context.store(STORE)
        seen = [*(store.get(record.key) or []), record.value]
        store.put(record.key, seen)
        self.context.forward(record.with_value(seen))


def _lines(*, persistent: bool, swapped: bool) -> Topology:
    keep = Store.persistent if persistent else Store.in_memory
    app = App(APPLICATION)

    def collect_input() -> None:
        app.stream(INPUT, key=serdes.string, value=serdes.string).process(
            Collect,
            stores=[keep(STORE, key=serdes.string, value=serdes.json)],
            key=serdes.string,
            value=serdes.json,
        ).to(OUTPUT)

    def copy_other() -> None:
        app.stream(OTHER, key=serdes.string, value=serdes.string).to(COPIES)

    for add in (copy_other, collect_input) if swapped else (collect_input, copy_other):
        add()
    return app.topology()


def _closing(kind: str, *, caching: bool, persistent: bool, kept_ms: int) -> Topology:
    app = App(APPLICATION)
    keep = Store.persistent if persistent else Store.in_memory
    store = keep(STORE, caching=caching, retention=kept_ms)
    stream = app.stream(INPUT, key=serdes.string, value=serdes.string)
    group = stream.group_by_key().windowed_by(windows.tumbling(WINDOW_MS))
    if kind == "closing":
        counts = group.count(store=store, emit="on_close")
    else:
        counts = group.count(store=store).suppress(until_window_closes(), name="final")
    counts.to_stream().select_key(lambda window, _: str(window), key=serdes.string).to(OUTPUT)
    return app.topology()


def _outer() -> Topology:
    app = App(APPLICATION)
    left, right = (
        app.stream(topic, key=serdes.string, value=serdes.string) for topic in (INPUT, OTHER)
    )
    left.outer_join(
        right,
        lambda one, other: f"{one}+{other}",
        within=WITHIN_MS,
        grace=GRACE_MS,
        emit_interval=0,
        name="outer",
    ).to(OUTPUT, value=serdes.string)
    return app.topology()


def topology(
    kind: str,
    *,
    caching: bool,
    persistent: bool,
    swapped: bool = False,
    kept_ms: int = KEPT_MS,
) -> Topology:
    """Return one of the module's topologies.

    `swapped` is of `lines`; `kept_ms` is how long stores of windows keep them.
    """
    if kind == "lines":
        return _lines(persistent=persistent, swapped=swapped)
    if kind == "tick":
        return _ticking(persistent=persistent)
    if kind == "outer":
        return _outer()
    if kind in TIMED:
        return _closing(kind, caching=caching, persistent=persistent, kept_ms=kept_ms)
    graph = Graph()
    last: Node = SourceNode(name="source", topic=INPUT, key=serdes.string, value=serdes.string)
    graph.add_node(last)
    value: Serde[Any] = serdes.string
    if kind == "regroup":
        last = _repartitioned(graph, last)
    if kind != "copy":
        value = serdes.int64 if kind == "count" else serdes.json
        store = StoreSpec(
            name=STORE, key=serdes.string, value=value, persistent=persistent, caching=caching
        )
        graph.declare_store(store, store)
        counts = kind == "count"
        operator = count_records(StoredView(store)) if counts else collect(caching=caching)
        last = ProcessorNode(
            name="aggregate",
            parents=(last,),
            operator=operator,
            stores=(STORE,),
            emits_updates=counts,
        )
        graph.add_node(last)
        if counts:
            last = ProcessorNode(name="results", parents=(last,), operator=forward_as_records)
            graph.add_node(last)
    graph.add_node(
        SinkNode(name="sink", parents=(last,), topic=OUTPUT, key=serdes.string, value=value)
    )
    return build_topology(APPLICATION, graph)


def _repartitioned(graph: Graph, source: Node) -> Node:
    rekeyed = ProcessorNode(name="regroup", parents=(source,), operator=regroup)
    sink = SinkNode(
        name="repartition-sink",
        parents=(rekeyed,),
        topic=REPARTITION,
        key=serdes.string,
        value=serdes.string,
        internal=True,
    )
    again = SourceNode(
        name="repartition-source",
        topic=REPARTITION,
        key=serdes.string,
        value=serdes.string,
        internal=True,
    )
    for node in (rekeyed, sink, again):
        graph.add_node(node)
    return again
