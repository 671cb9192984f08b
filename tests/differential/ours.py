"""Run a case in Millrace: the application that its description says, in TopologyTestDriver."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from streams import (
    App,
    Store,
    TopologyTestDriver,
    serdes,
    topics,
    until_time_limit,
    until_window_closes,
    windows,
)
from streams.graph.nodes import StoreKind
from tests.differential import vocabulary
from tests.differential.description import Advance, Case, Step, Topology, topics_of
from tests.differential.processors import Changes, Fill, processor

SERDES: Mapping[str, Any] = {"string": serdes.string, "int64": serdes.int64}


def run(case: Case, **settings: Any) -> dict[str, Any]:
    """Run the case in Millrace and return its results in the form in which `Peer` answers.

    `settings` are those of the application.
    """
    try:
        app = build(case.topology, **settings)
        with TopologyTestDriver(app, start_ms=case.wall_clock_ms) as driver:
            _create_matching_topics(driver, case.topology)
            for each in case.input:
                if isinstance(each, Advance):
                    driver.advance_wall_clock(each.ms)
                    continue
                headers = [(name, None if v is None else v.encode()) for name, v in each.headers]
                driver.topic(each.topic).pipe(
                    each.key, each.value, timestamp_ms=each.timestamp_ms, headers=headers
                )
            return {
                "sub_topologies": len(app.topology().subtopologies),
                "topics": _topics(driver, case.topology),
                "stores": _stores(driver, app, case),
                "dropped": driver.dropped,
            }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "stack": traceback.format_exc()}


def _create_matching_topics(driver: TopologyTestDriver, topology: Topology) -> None:
    """Let the topics of patterns be there: without any there is no task here, which has a clock."""
    for step in topology.steps:
        if "pattern" in step.args:
            for topic in step.args["topics"]:
                driver.topic(topic)


def _topics(driver: TopologyTestDriver, topology: Topology) -> dict[str, list[Any]]:
    """Read the topics that sinks name and those that they make up."""
    read = {topic for each in topology.steps for topic in topics_of(each)}
    names = [name for name in driver.topics if not name.startswith("app-")]
    sinks = {each.args["topic"] for each in topology.steps if each.op == "to"}
    found = {}
    for name in names:
        if name in read and name not in sinks:
            continue
        records = driver.topic(name, key=serdes.bytes, value=serdes.bytes).read_all()
        if records:
            found[name] = [
                [
                    _hex(record.key),
                    _hex(record.value),
                    record.timestamp_ms,
                    [[header, _hex(value)] for header, value in record.headers],
                ]
                for record in records
            ]
    return found


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _stores(driver: TopologyTestDriver, app: App, case: Case) -> dict[str, list[Any]]:
    specs = {spec.name: spec for sub in app.topology().subtopologies for spec in sub.stores}
    found = {}
    for step in case.topology.steps:
        for argument in ("store", "with"):
            store = step.args.get(argument)
            if store is not None and store["name"] in specs:
                view, spec = driver.store(store["name"]), specs[store["name"]]
                # A processor's windows have no timestamps in Kafka Streams.
                rows = _rows(view, spec.kind, case, stamped="kind" not in store)
                found[store["name"]] = sorted(rows, key=repr)
    return found


def _rows(view: Any, kind: StoreKind, case: Case, *, stamped: bool) -> Iterable[list[Any]]:
    match kind.value:
        case "key-value":
            for key, _ in view.all():
                value, time_ms = view.entry(key)
                yield [_plain(key), value, time_ms]
        case "window":
            for window, value in view.all():
                row = [window.key, window.start_ms, window.end_ms, value]
                if stamped:
                    row.append(view.entry(window.key, window.start_ms).timestamp_ms)
                yield row
        case "session":
            for window, value in view.all():
                yield [window.key, window.start_ms, window.end_ms, value]
        case "versioned":
            records = [each for each in case.input if not isinstance(each, Advance)]
            keys = sorted({each.key for each in records if each.key is not None})
            for key in keys:
                for time_ms in sorted({each.timestamp_ms for each in records}):
                    found = view.get(key, time_ms)
                    if found is not None:
                        yield [key, time_ms, found.value, found.timestamp_ms]


def _plain(key: Any) -> Any:
    return key if isinstance(key, str | int) else str(key)


def build(topology: Topology, application_id: str = "app", **settings: Any) -> App:
    """Build the application with the names that `Building.java` gives."""
    optimization = "all" if topology.optimize else "none"
    app = App(application_id, topology_optimization=optimization, **settings)
    made: dict[str, Any] = {}
    for step in topology.steps:
        inputs = [made[each] for each in step.parents]
        caching = topology.cache_bytes > 0
        made[step.id] = _OPERATORS[step.op](_Context(app, step, inputs, caching, topology))
    return app


class _Context:
    """Holds one step, what it starts from, and how it keeps its results."""

    def __init__(
        self, app: App, step: Step, inputs: list[Any], caching: bool, topology: Topology
    ) -> None:
        self.app = app
        self.step = step
        self.args = step.args
        self.input: Any = inputs[0] if inputs else None
        self.inputs = inputs
        self.topology = topology
        self._caching = caching
        self.name = step.name or step.id

    @property
    def fn(self) -> str:
        return str(self.args["fn"])

    @property
    def serdes(self) -> dict[str, Any]:
        """Return the serdes of the step's results, where their types have one of their own."""
        pairs = (("key", self.step.key), ("value", self.step.value))
        return {what: SERDES[kind] for what, kind in pairs if kind in SERDES}

    @property
    def value(self) -> dict[str, Any]:
        return {"value": SERDES[self.step.value]}

    def store(self, argument: str = "store") -> dict[str, Any]:
        given = self.args.get(argument)
        return {} if given is None else {"store": made_store(given, self._caching)}

    def own(self) -> list[Store]:
        """Return the store that a processor brings."""
        given = self.args.get("store")
        return [] if given is None else [made_store(given, self._caching)]


def made_store(given: Mapping[str, Any], caching: bool) -> Store:
    more: dict[str, Any] = {}
    if "value" in given:
        more = {"key": serdes.string, "value": SERDES[given["value"]]}
    name = given["name"]
    if given.get("history_ms") is not None:
        return Store.versioned(name, history=given["history_ms"], **more)
    more["caching"] = caching and given.get("caching", False)
    match given.get("kind", "key_value"):
        case "window":
            return Store.window(
                name,
                size=given["size_ms"],
                retention=given["retention_ms"],
                retain_duplicates=given["duplicates"],
                **more,
            )
        case "session":
            return Store.session(name, retention=given["retention_ms"], **more)
    if given.get("retention_ms") is not None:
        more["retention"] = given["retention_ms"]
    if given.get("ttl_ms") is not None:
        more["ttl"] = given["ttl_ms"]
    if given["persistent"]:
        return Store.persistent(name, **more)
    return Store.in_memory(name, **more)


def _stream(at: _Context) -> Any:
    options = _source_options(at.args)
    if "pattern" in at.args:
        options["co_partitioned"] = False
    return at.app.stream(_read(at.args), name=at.name, **at.serdes, **options)


def _read(args: Mapping[str, Any]) -> Any:
    """Return the topic that a source reads, or its pattern."""
    return topics.matching(args["pattern"]) if "pattern" in args else args["topic"]


def _source_options(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a source finds the times of records, and where it begins."""
    options: dict[str, Any] = {}
    if (extractor := args.get("extractor")) is not None:
        options["timestamp_extractor"] = lambda record, partition_time_ms: vocabulary.time(
            extractor, record.value, record.timestamp_ms, partition_time_ms
        )
    if (reset := args.get("reset")) is not None:
        options["offset_reset"] = timedelta(hours=1) if reset == "by_duration" else reset
    return options


def _table(at: _Context) -> Any:
    return at.app.table(at.args["topic"], name=at.name, **at.serdes, **at.store())


def _global_table(at: _Context) -> Any:
    return at.app.global_table(at.args["topic"], name=at.name, **at.serdes, **at.store())


def _predicate(function: str) -> Callable[[Any, Any], bool]:
    return lambda key, value: vocabulary.test(function, key, value)


def _filter(at: _Context) -> Any:
    return getattr(at.input, at.step.op)(_predicate(at.fn), name=at.name, **at.store())


def _map_values(at: _Context) -> Any:
    function = at.fn
    return at.input.map_values(
        lambda value: vocabulary.value(function, value), name=at.name, **at.value, **at.store()
    )


def _map(at: _Context) -> Any:
    function = at.fn
    return at.input.map(
        lambda key, value: vocabulary.pair(function, key, value), name=at.name, **at.serdes
    )


def _flat_map(at: _Context) -> Any:
    function = at.fn
    return at.input.flat_map(
        lambda key, value: vocabulary.pairs(function, key, value), name=at.name, **at.serdes
    )


def _flat_map_values(at: _Context) -> Any:
    function = at.fn
    return at.input.flat_map_values(
        lambda value: vocabulary.values(function, value), name=at.name, **at.value
    )


def _select_key(at: _Context) -> Any:
    function = at.fn
    return at.input.select_key(
        lambda key, value: vocabulary.key(function, key, value), name=at.name, key=serdes.string
    )


def _peek(at: _Context) -> Any:
    return at.input.peek(lambda key, value: None, name=at.name)


def _merge(at: _Context) -> Any:
    # Kafka Streams merges topics with any partition counts, whatever follows.
    return at.input.merge(at.inputs[1], name=at.name, co_partitioned=False)


def _split(at: _Context) -> Any:
    branches = {name: _predicate(function) for name, function in at.args["branches"]}
    return at.input.split(branches, default=at.args.get("default"), name=at.name)


def _branch(at: _Context) -> Any:
    return at.input[at.args["branch"]]


def _repartition(at: _Context) -> Any:
    return at.input.repartition(
        partitions=at.args.get("partitions"), name=at.step.name, **at.serdes
    )


def _to(at: _Context) -> None:
    function = at.args.get("partitioner")
    given: dict[str, Any] = {}
    if function is not None:
        given["partitioner"] = lambda key, value, count: vocabulary.partitions(function, value)
    at.input.to(at.args["topic"], **at.serdes, **given)


def _to_dynamic(at: _Context) -> None:
    function = at.fn
    at.input.to(lambda record: vocabulary.topic(function, record.value), **at.serdes)


def _to_table(at: _Context) -> Any:
    return at.input.to_table(name=at.name, **at.serdes, **at.store())


def _process(at: _Context) -> Any:
    args = at.args
    return at.input.process(lambda: processor(args), stores=at.own(), name=at.name, **at.serdes)


def _process_values(at: _Context) -> Any:
    args = at.args
    return at.input.process_values(
        lambda: processor({**args, "fixed": True}), stores=at.own(), name=at.name, **at.value
    )


def _group_by(at: _Context) -> Any:
    function = at.fn
    if hasattr(at.input, "to_stream"):  # a table
        return at.input.group_by(
            lambda key, value: vocabulary.pair(function, key, value), **named(at), **at.serdes
        )
    return at.input.group_by(
        lambda key, value: vocabulary.key(function, key, value), **named(at), **at.serdes
    )


def _group_by_key(at: _Context) -> Any:
    return at.input.group_by_key(**at.serdes)


def named(at: _Context) -> dict[str, Any]:
    return {} if at.step.name is None else {"name": at.step.name}


def _windowed_by(at: _Context) -> Any:
    args = at.args
    grace = {"grace": args["grace_ms"]} if "grace_ms" in args else {}
    made: Any
    match args["kind"]:
        case "tumbling":
            made = windows.tumbling(args["size_ms"], **grace)
        case "hopping":
            made = windows.hopping(args["size_ms"], args["advance_ms"], **grace)
        case "sliding":
            made = windows.sliding(args["size_ms"], **grace)
        case "session":
            made = windows.session(args["size_ms"], **grace)
        case _:
            made = windows.unlimited(start=args["start_ms"])
    return at.input.windowed_by(made)


def _cogroup(at: _Context) -> Any:
    def folding(function: str) -> Callable[[Any, Any, Any], Any]:
        return lambda key, value, so_far: vocabulary.aggregate(function, key, value, so_far)

    functions = at.args["fns"]
    whole = at.input.cogroup(folding(functions[0]))
    for other, function in zip(at.inputs[1:], functions[1:], strict=True):
        whole = whole.cogroup(other, folding(function))
    return whole


def _emit(at: _Context) -> dict[str, Any]:
    return {"emit": at.args["emit"]} if "emit" in at.args else {}


def _count(at: _Context) -> Any:
    return at.input.count(name=at.name, **at.store(), **_emit(at))


def _reduce(at: _Context) -> Any:
    functions = [at.fn, *([at.args["subtractor"]] if "subtractor" in at.args else [])]
    reducers = [_reducer(each) for each in functions]
    return at.input.reduce(*reducers, name=at.name, **at.store(), **_emit(at))


def _reducer(function: str) -> Callable[[Any, Any], Any]:
    return lambda old, new: vocabulary.reduce(function, old, new)


def _aggregate(at: _Context) -> Any:
    function = at.fn
    group = at.topology.step(at.step.parents[0])
    ops = {group.op, *(at.topology.step(each).op for each in group.parents)}
    folds = [_folder(function)]
    if "subtractor" in at.args:
        folds.append(_folder(at.args["subtractor"]))
    if "cogroup" in ops:
        folds = []
    more: dict[str, Any] = {}
    if group.args.get("kind") == "session":
        more["merger"] = lambda key, one, other: vocabulary.merge(function, one, other)
    return at.input.aggregate(
        lambda: vocabulary.initial(function),
        *folds,
        **more,
        name=at.name,
        **at.value,
        **at.store(),
        **_emit(at),
    )


def _folder(function: str) -> Callable[[Any, Any, Any], Any]:
    return lambda key, value, so_far: vocabulary.aggregate(function, key, value, so_far)


def _transform_values(at: _Context) -> Any:
    own = at.store("with").get("store")
    return at.input.transform_values(
        lambda: Changes(None if own is None else own.name),
        stores=[] if own is None else [own],
        name=at.name,
        **at.value,
        **at.store(),
    )


def _suppress(at: _Context) -> Any:
    args = at.args
    limits = {each: args[each] for each in ("max_records", "max_bytes") if each in args}
    if args["until"] == "window_closes":
        return at.input.suppress(until_window_closes(), **named(at))
    return at.input.suppress(until_time_limit(args["wait_ms"], **limits), **named(at))


def _to_stream(at: _Context) -> Any:
    return at.input.to_stream(name=at.name)


def _joiner(function: str) -> Callable[[Any, Any], Any]:
    return lambda left, right: vocabulary.join(function, left, right)


def _join_of(at: _Context) -> Any:
    method = {"inner": "join", "left": "left_join", "outer": "outer_join"}[at.args["kind"]]
    return getattr(at.input, method)


def _join_stream(at: _Context) -> Any:
    args = at.args
    left, right = (at.topology.step(each) for each in at.step.parents)
    return _join_of(at)(
        at.inputs[1],
        _joiner(at.fn),
        before=args["before_ms"],
        after=args["after_ms"],
        grace=args["grace_ms"],
        this_value=SERDES[left.value],
        other_value=SERDES[right.value],
        **at.serdes,
        **named(at),
    )


def _join_table(at: _Context) -> Any:
    grace = {"grace": at.args["grace_ms"]} if "grace_ms" in at.args else {}
    left = at.topology.step(at.step.parents[0])
    this_value = SERDES[left.value]
    return _join_of(at)(
        at.inputs[1], _joiner(at.fn), this_value=this_value, **grace, **at.serdes, **named(at)
    )


def _join_global(at: _Context) -> Any:
    selector = at.args["key_fn"]
    return _join_of(at)(
        at.inputs[1],
        _joiner(at.fn),
        key=lambda key, value: vocabulary.key(selector, key, value),
        **at.value,
    )


def _join_tables(at: _Context) -> Any:
    return _join_of(at)(at.inputs[1], _joiner(at.fn), name=at.name, **at.value, **at.store())


def _join_foreign(at: _Context) -> Any:
    selector = at.args["key_fn"]
    return _join_of(at)(
        at.inputs[1],
        _joiner(at.fn),
        foreign_key=lambda key, value: vocabulary.key(selector, None, value),
        name=at.name,
        **at.value,
        **at.store(),
    )


def _builder(at: _Context) -> None:
    args, key, written = at.args, SERDES[at.step.key], SERDES[at.args["writes"]]
    builder = at.app.topology_builder()
    options = _source_options(args)
    builder.add_source(f"{at.step.id}-source", _read(args), **at.serdes, **options)
    builder.add_processor(at.step.id, lambda: processor(args), f"{at.step.id}-source")
    for store in at.own():
        builder.add_store(store, at.step.id)
    builder.add_sink(f"{at.step.id}-sink", args["out"], at.step.id, key=key, value=written)
    copy = f"{args['out']}-copy"
    builder.add_sink(f"{at.step.id}-copy", copy, f"{at.step.id}-source", **at.serdes)


def _global_store(at: _Context) -> None:
    name = at.args["store"]["name"]
    (store,) = at.own()
    at.app.topology_builder().add_global_store(
        store, at.args["topic"], lambda: Fill(name), **at.serdes, name=at.step.id
    )


_OPERATORS: Mapping[str, Callable[[_Context], Any]] = {
    "stream": _stream,
    "table": _table,
    "global_table": _global_table,
    "filter": _filter,
    "filter_not": _filter,
    "map": _map,
    "map_values": _map_values,
    "flat_map": _flat_map,
    "flat_map_values": _flat_map_values,
    "select_key": _select_key,
    "peek": _peek,
    "merge": _merge,
    "split": _split,
    "branch": _branch,
    "repartition": _repartition,
    "to": _to,
    "to_dynamic": _to_dynamic,
    "to_table": _to_table,
    "process": _process,
    "process_values": _process_values,
    "group_by": _group_by,
    "group_by_key": _group_by_key,
    "windowed_by": _windowed_by,
    "cogroup": _cogroup,
    "count": _count,
    "reduce": _reduce,
    "aggregate": _aggregate,
    "transform_values": _transform_values,
    "suppress": _suppress,
    "to_stream": _to_stream,
    "join_stream": _join_stream,
    "join_table": _join_table,
    "join_global": _join_global,
    "join_tables": _join_tables,
    "join_foreign": _join_foreign,
    "builder": _builder,
    "global_store": _global_store,
}
