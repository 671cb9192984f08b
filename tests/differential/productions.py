"""Define the productions of generated topologies: each adds one operator with what it needs.

A production chooses where it starts; it makes a new source where nothing fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.draft import (
    GROUP,
    PAIRS,
    STREAM,
    TABLE,
    TABLE_GROUP,
    Draft,
    Handle,
)
from tests.differential.known import joins_changes_of_one_commit

PREDICATES = ("even", "longer:3", "key_is:a", "has_value", "has_key", "all", "none")
KEYS = ("first_letter", "value", "bucket:2", "key", "constant:a")
VALUES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "string": (
        ("append:x", "string"),
        ("upper", "string"),
        ("null_over:4", "string"),
        ("or_null", "string"),
        ("same", "string"),
        ("length", "int64"),
    ),
    "int64": (
        ("add:3", "int64"),
        ("null_over:4", "int64"),
        ("same", "int64"),
        ("text", "string"),
        ("or_null", "string"),
    ),
}
REDUCERS: Mapping[str, tuple[str, ...]] = {
    "string": ("concat", "latest", "max", "concat_under:12"),
    "int64": ("sum", "latest", "max"),
}
AGGREGATES = (
    ("sum", "int64"),
    ("max", "int64"),
    ("concat", "string"),
    ("concat_under:12", "string"),
)
JOINERS = (("concat", "string"), ("sum", "int64"), ("null_over:6", "string"))
STREAM_JOINS = ("inner", "left", "outer")
ENDLESS = f"windowed:{2**63 - 1}"

Make = Callable[[Draft], object]


@dataclass(frozen=True, slots=True)
class Production:
    """Represents a production; `weight` is how often it is drawn, beside the others.

    One that `needs_task_time` sees the stream time of its task, and is put only where all of the
    topology is one task.
    """

    make: Make
    weight: float = 1.0
    needs_task_time: bool = False
    stays: bool = False
    """It needs no repartition topic, and no other source: it can be beside such a one."""


def filter_(draft: Draft, op: str = "filter") -> None:
    if draft.chance(0.6):
        draft.like(op, draft.stream(), fn=draft.rng.choice(PREDICATES))
    else:
        of_table(draft, op)


def of_table(draft: Draft, op: str) -> None:
    table = draft.table(true_old=True)
    store = draft.store(0.4) if table.key == "string" else None
    draft.like(op, table, fn=draft.rng.choice(PREDICATES), store=store)


def filter_not(draft: Draft) -> None:
    filter_(draft, "filter_not")


def map_values(draft: Draft) -> None:
    if draft.chance(0.6):
        stream = draft.stream()
        function, value = draft.rng.choice(VALUES[stream.value])
        draft.like("map_values", stream, value, fn=function)
        return
    table = draft.table()
    function, value = draft.rng.choice(VALUES[table.value])
    store = draft.store(0.4) if table.key == "string" else None
    draft.like("map_values", table, value, fn=function, store=store)


def map_(draft: Draft) -> None:
    stream = draft.stream()
    if draft.chance(0.4):
        draft.add("map", [stream], STREAM, "string", "string", fn="swap")
    else:
        function = f"by:{draft.rng.choice(KEYS)}"
        draft.add("map", [stream], STREAM, "string", stream.value, fn=function)


def flat_map(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    function = draft.rng.choice(("words", "twice", "both_keys"))
    value = "string" if function == "words" else stream.value
    draft.add("flat_map", [stream], STREAM, "string", value, fn=function)


def flat_map_values(draft: Draft) -> None:
    stream = draft.stream()
    function = draft.rng.choice(("words", "twice"))
    value = "string" if function == "words" else stream.value
    draft.like("flat_map_values", stream, value, fn=function)


def select_key(draft: Draft) -> None:
    stream = draft.stream()
    draft.add("select_key", [stream], STREAM, "string", stream.value, fn=draft.rng.choice(KEYS))


def peek(draft: Draft) -> None:
    draft.like("peek", draft.stream())


def merge(draft: Draft) -> None:
    one = draft.stream()
    others = draft.among(
        lambda each: (
            each.shape == STREAM
            and (each.key, each.value) == (one.key, one.value)
            and each is not one
        )
    )
    if not others and one.key != "string":
        return
    other = draft.rng.choice(others) if others else draft.source_stream(one.value)
    draft.add("merge", [one, other], STREAM, one.key, one.value)


def split(draft: Draft) -> None:
    stream = draft.stream()
    names = ("one", "two")[: draft.rng.randint(1, 2)]
    branches = [[name, draft.rng.choice(PREDICATES)] for name in names]
    default = "rest" if draft.chance(0.6) else None
    whole = draft.add(
        "split", [stream], "split", stream.key, stream.value, branches=branches, default=default
    )
    for name in (*names, *([default] if default else [])):
        draft.add("branch", [whole], STREAM, stream.key, stream.value, branch=name)


def repartition(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    name = f"name-{len(draft.steps)}" if draft.chance(0.5) else None
    partitions = 1 if draft.chance(0.3) else None
    draft.like("repartition", stream, name=name, partitions=partitions)


def to_dynamic(draft: Draft) -> None:
    stream = draft.stream()
    function = f"topic:out-{len(draft.steps)}"
    draft.add("to_dynamic", [stream], None, stream.key, stream.value, fn=function)


def to_table(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    draft.add("to_table", [stream], TABLE, "string", stream.value, store=draft.store())


def process(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    kind = draft.rng.choice(("count", "stamp", "to_child", "recent", "versions", "sessions"))
    reach = draft.time(5, 10)
    retention = draft.time(20, 60)

    def made(value: str, **args: Any) -> None:
        draft.add("process", [stream], STREAM, "string", value, processor=kind, **args)

    match kind:
        case "count":
            made("int64", store=draft.own_store("key_value", "int64"))
        case "stamp":
            made(stream.value)
        case "to_child":
            children = (draft.new_id(), draft.new_id())
            parent = draft.add(
                "process",
                [stream],
                STREAM,
                "string",
                stream.value,
                processor=kind,
                children=list(children),
            )
            for each in children:
                draft.like("map_values", parent, step_id=each, fn="same")
        case "recent":
            store = draft.own_store(
                "window",
                stream.value,
                size_ms=draft.time(5),
                retention_ms=retention,
                duplicates=draft.chance(0.4),
            )
            made("string", store=store, reach_ms=reach)
        case "versions":
            store = draft.own_store("versioned", stream.value, history_ms=retention)
            made("string", store=store, reach_ms=reach)
        case "sessions":
            store = draft.own_store("session", "string", retention_ms=retention)
            made("string", store=store, reach_ms=reach)


def process_global(draft: Draft) -> None:
    table = draft.global_table()
    name = next(each for each in draft.steps if each.id == table.id).args["store"]["name"]
    stream = draft.stream(text_key=True)
    table.used = True
    draft.add(
        "process", [stream], STREAM, "string", "string", processor="global", **{"global": name}
    )


def process_values(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    if draft.chance(0.5):
        store = draft.own_store("key_value", "int64")
        draft.like("process_values", stream, "int64", processor="count", store=store)
    else:
        draft.like("process_values", stream, processor="stamp")


def stream_ticks(draft: Draft) -> None:
    stream = draft.stream(text_key=True, value="string")
    draft.like("process", stream, processor="stream_ticks", interval_ms=draft.time(3, 10))


def wall_ticks(draft: Draft) -> None:
    stream = draft.stream(text_key=True, value="string")
    draft.like("process", stream, processor="wall_ticks", interval_ms=draft.rng.choice((50, 200)))


def hold(draft: Draft) -> None:
    stream = draft.stream(text_key=True)
    store = draft.own_store("key_value", stream.value)
    interval = draft.time(5, 20)
    draft.like("process", stream, processor="hold", store=store, interval_ms=interval)


def group(draft: Draft) -> Handle:
    """Return a grouped stream: one that is there, or a new one."""
    found = draft.pick(GROUP)
    if found is not None and draft.chance(0.3):
        return found
    stream = draft.stream()
    name = None
    if stream.key == "string" and draft.chance(0.5):
        return draft.add("group_by_key", [stream], GROUP, "string", stream.value, name=name)
    function = draft.rng.choice(KEYS)
    return draft.add("group_by", [stream], GROUP, "string", stream.value, name=name, fn=function)


def aggregated(
    draft: Draft, of: Handle, key: str, *, kind: str | None = None, emit: str | None = None
) -> Handle:
    """Add an aggregation by count, reduce or aggregate; `kind` is that of its windows."""
    store = results_store(draft, kind, emit)
    op = draft.rng.choice(("count", "reduce", "aggregate"))
    function, value = None, "int64"
    if op == "reduce":
        function, value = draft.rng.choice(REDUCERS[of.value]), of.value
    elif op == "aggregate":
        function, value = draft.rng.choice(AGGREGATES)
    made = draft.add(op, [of], TABLE, key, value, fn=function, store=store, emit=emit)
    # A new sliding window that takes over what another has, has that for its old value.
    made.starts_from_initial = (op != "reduce" or kind == "sliding") and not cached(draft, store)
    return made


def cached(draft: Draft, store: Mapping[str, Any] | None) -> bool:
    return draft.cache_bytes > 0 and (store is None or bool(store["caching"]))


def results_store(
    draft: Draft, kind: str | None, emit: str | None = None, *, stream_count: int = 1
) -> Any:
    """Choose where the results of windows, or none, of one stream or several are kept.

    Those of windows are kept for long where Kafka Streams would show, or lose, what has expired:
    through its cache, at the edge of sessions, and where they close (docs/decisions/0020). Streams
    have times of their own, so that one may look for what has expired by the other's.
    """
    looks_back = kind in ("session", "sliding") or (kind is not None and stream_count > 1)
    store = draft.store(1.0 if emit == "on_close" or looks_back else 0.7, windows=kind is not None)
    if store is None or kind in (None, "unlimited"):
        return store
    if emit == "on_close" or kind == "session" or cached(draft, store):
        store["retention_ms"] = draft.time(100_000)
    return store


def aggregate_group(draft: Draft) -> None:
    aggregated(draft, group(draft), "string")


def windowed(draft: Draft, of: Handle, kind: str) -> tuple[Handle, str]:
    """Return the grouped stream in windows, and the type of its keys."""
    size, grace = draft.time(5, 10, 20), draft.time(0, 5, 30)
    advance = None
    key = f"windowed:{size}"
    match kind:
        case "hopping":
            advance = max(1, size // draft.rng.choice((2, 3, 5)))
        case "session":
            key = "session"
        case "unlimited":
            start = draft.time(0, 0, 105)
            made = draft.add(
                "windowed_by", [of], "windows", "string", of.value, kind=kind, start_ms=start
            )
            return made, ENDLESS
    made = draft.add(
        "windowed_by",
        [of],
        "windows",
        "string",
        of.value,
        kind=kind,
        size_ms=size,
        advance_ms=advance,
        grace_ms=grace,
    )
    return made, key


def aggregate_windows(draft: Draft, kind: str) -> None:
    windows, key = windowed(draft, group(draft), kind)
    emit = "on_close" if kind != "unlimited" and draft.chance(0.35) else None
    table = aggregated(draft, windows, key, kind=kind, emit=emit)
    table.closes = kind != "unlimited" and emit is None


def cogroup(draft: Draft) -> None:
    function, value = draft.rng.choice(AGGREGATES)
    groups = [group(draft) for _ in range(draft.rng.randint(1, 2))]
    if len({each.id for each in groups}) < len(groups):
        groups = groups[:1]
    functions = [function for _ in groups]
    whole = draft.add("cogroup", groups, "cogroup", "string", value, fns=functions)
    key, kind = "string", None
    if draft.chance(0.5):
        kind = draft.rng.choice(("tumbling", "hopping", "sliding", "session"))
        whole, key = windowed(draft, whole, kind)
    store = results_store(draft, kind, stream_count=len(groups))
    table = draft.add("aggregate", [whole], TABLE, key, value, fn=function, store=store)
    table.closes = kind is not None
    table.starts_from_initial = not cached(draft, store)


def aggregate_table(draft: Draft) -> None:
    table = draft.table(true_old=True)
    function = draft.rng.choice(("by:first_letter", "by:bucket:2", "by:constant:a", "by:value"))
    grouped = draft.add("group_by", [table], TABLE_GROUP, "string", table.value, fn=function)
    store = draft.store()
    op = draft.rng.choice(("count", "reduce", "aggregate"))
    if op == "count":
        draft.add(op, [grouped], TABLE, "string", "int64", store=store)
        return
    pairs = (("sum", "difference", "int64"), ("concat", "minus", "string"))
    adder, subtractor, value = draft.rng.choice(pairs)
    if op == "reduce" and value != grouped.value:
        adder, subtractor, value = next(each for each in pairs if each[2] == grouped.value)
    draft.add(op, [grouped], TABLE, "string", value, fn=adder, subtractor=subtractor, store=store)


def transform_values(draft: Draft) -> None:
    table = draft.table(text_key=True)
    own = draft.own_store("key_value", "int64") if draft.chance(0.5) else None
    # Kafka Streams can't read through one that has a store of its own and keeps no results.
    store = draft.store(0.4 if own is None else 1.0)
    draft.like("transform_values", table, "string", store=store, **{"with": own})


def suppress_until_closed(draft: Draft) -> None:
    found = draft.among(lambda each: each.closes)
    if not found:
        aggregate_windows(draft, draft.rng.choice(("tumbling", "hopping", "sliding", "session")))
        found = draft.among(lambda each: each.closes)
    if found:
        made = draft.like("suppress", draft.rng.choice(found), until="window_closes")
        _without_old_values(draft, made)


def suppress_for_a_time(draft: Draft) -> None:
    table = draft.table(history=0, known=True)
    if table.history_ms is not None:
        return  # what is versioned can't be held back
    limit = draft.rng.randint(1, 3) if draft.chance(0.5) else None
    size = None
    if not table.starts_from_initial and draft.chance(0.2):  # its bytes count
        size = draft.rng.choice((60, 150))
    made = draft.like(
        "suppress",
        table,
        until="time_limit",
        wait_ms=draft.time(0, 5, 20),
        max_records=limit,
        max_bytes=size,
    )
    _without_old_values(draft, made)


def _without_old_values(draft: Draft, suppressed: Handle) -> None:
    """Turn what is suppressed into a stream, as its old values differ (docs/decisions/0023)."""
    draft.add("to_stream", [suppressed], STREAM, suppressed.key, suppressed.value)
    draft.handles.remove(suppressed)


def to_stream(draft: Draft) -> None:
    table = draft.table()
    draft.add("to_stream", [table], STREAM, table.key, table.value)


def join_stream(draft: Draft) -> None:
    left = draft.stream(text_key=True)
    right = left if draft.chance(0.15) else draft.stream(text_key=True)
    if right is left and draft.chance(0.7):
        right = draft.source_stream()
    function, value = draft.rng.choice(JOINERS)
    kinds: tuple[str, ...] = STREAM_JOINS
    if left is right and draft.optimize:
        kinds = ("inner",)  # Kafka Streams takes the others for inner ones
    draft.add(
        "join_stream",
        [left, right],
        STREAM,
        "string",
        value,
        name=f"name-{len(draft.steps)}" if draft.chance(0.4) else None,
        kind=draft.rng.choice(kinds),
        fn=function,
        before_ms=draft.time(0, 5, 20),
        after_ms=draft.time(0, 5, 10),
        grace_ms=draft.time(0, 5, 20),
    )


def join_table(draft: Draft) -> None:
    stream, table = draft.stream(text_key=True), draft.table(text_key=True, history=0.4)
    function, value = draft.rng.choice(JOINERS)
    grace = None
    if table.history_ms is not None and draft.chance(0.7):
        grace = min(draft.time(0, 5, 15), table.history_ms)
    draft.add(
        "join_table",
        [stream, table],
        STREAM,
        "string",
        value,
        kind=draft.rng.choice(("inner", "left")),
        fn=function,
        grace_ms=grace,
    )


def join_global(draft: Draft) -> None:
    stream, table = draft.stream(), draft.global_table()
    function, value = draft.rng.choice(JOINERS)
    draft.add(
        "join_global",
        [stream, table],
        STREAM,
        stream.key,
        value,
        kind=draft.rng.choice(("inner", "left")),
        fn=function,
        key_fn=draft.rng.choice(("first_letter", "value", "bucket:2", "key")),
    )


def join_tables(draft: Draft) -> None:
    left, right = draft.table(text_key=True), draft.table(text_key=True)
    if right is left and draft.chance(0.9):
        right = draft.source_table()
    if joins_changes_of_one_commit(draft.so_far(), left.id, right.id):
        right = draft.source_table()
    function, value = draft.rng.choice(JOINERS)
    store = draft.store(0.4)
    made = draft.add(
        "join_tables",
        [left, right],
        TABLE,
        "string",
        value,
        kind=draft.rng.choice(("inner", "left", "outer")),
        fn=function,
        store=store,
    )
    made.unknown = store is None
    made.starts_from_initial = left.starts_from_initial or right.starts_from_initial


def join_foreign(draft: Draft) -> None:
    kind = draft.rng.choice(("inner", "left"))
    if kind == "inner":
        # Where one record changes a row twice, or both sides, ours asks again: decisions/0024.
        left, right = draft.source_table(), draft.source_table()
    else:
        left = draft.table(text_key=True, known=True, true_old=True)
        right = draft.table(text_key=True, known=True, true_old=True)
        if right is left and draft.chance(0.8):
            right = draft.source_table()
    function, value = draft.rng.choice(JOINERS)
    store = draft.store(0.4)
    made = draft.add(
        "join_foreign",
        [left, right],
        TABLE,
        "string",
        value,
        kind=kind,
        fn=function,
        key_fn=draft.rng.choice(("first_letter", "value", "bucket:2")),
        store=store,
    )
    made.unknown = store is None


def builder(draft: Draft) -> None:
    """Add a source, a processor and sinks by name, without the DSL."""
    key, read = types = draft.rng.choice(PAIRS)
    source = draft.source_options(types, by_pattern=draft.chance(0.3))
    kind = draft.rng.choice(("count", "stamp", "recent", "versions", "sessions"))
    reach, retention = draft.time(5, 10), draft.time(20, 60)
    store: Mapping[str, Any] | None = None
    value = read if kind == "stamp" else "string"
    match kind:
        case "count":
            store, value = draft.own_store("key_value", "int64"), "int64"
        case "recent":
            size = {"size_ms": draft.time(5), "retention_ms": retention, "duplicates": False}
            store = draft.own_store("window", read, **size)
        case "versions":
            store = draft.own_store("versioned", read, history_ms=retention)
        case "sessions":
            store = draft.own_store("session", "string", retention_ms=retention)
    arguments: dict[str, Any] = {"processor": kind, "store": store, "reach_ms": reach}
    out = f"out-{len(draft.steps)}"
    draft.add("builder", [], None, key, read, out=out, writes=value, **source, **arguments)


def global_store(draft: Draft) -> None:
    """Add a global store that a processor fills, and a processor that reads it."""
    topic = f"in{len(draft.topics)}"
    types = draft.rng.choice(PAIRS)
    draft.topics[topic] = types
    store = {**draft.own_store("key_value", "string"), "caching": False}
    draft.add("global_store", [], None, *types, topic=topic, store=store)
    stream = draft.stream(text_key=True)
    arguments = {"processor": "global", "global": store["name"]}
    draft.add("process", [stream], STREAM, "string", "string", **arguments)


def source_options(draft: Draft) -> None:
    draft.source_with_options(by_pattern=False)


def source_pattern(draft: Draft) -> None:
    draft.source_with_options(by_pattern=True)


def _windows(kind: str) -> Make:
    return lambda draft: aggregate_windows(draft, kind)


PRODUCTIONS: Mapping[str, Production] = {
    "filter": Production(filter_),
    "filter_not": Production(filter_not),
    "map": Production(map_),
    "map_values": Production(map_values),
    "flat_map": Production(flat_map),
    "flat_map_values": Production(flat_map_values, stays=True),
    "select_key": Production(select_key),
    "peek": Production(peek, 0.4, stays=True),
    "merge": Production(merge),
    "split": Production(split, stays=True),
    "repartition": Production(repartition),
    "to_dynamic": Production(to_dynamic, stays=True),
    "to_table": Production(to_table),
    "process": Production(process, 1.5),
    "process_global": Production(process_global),
    "builder": Production(builder),
    "source_options": Production(source_options),
    "source_pattern": Production(source_pattern),
    "global_store": Production(global_store),
    "process_values": Production(process_values, stays=True),
    "stream_ticks": Production(stream_ticks, 3.0, needs_task_time=True),
    "hold": Production(hold, 3.0, needs_task_time=True),
    "wall_ticks": Production(wall_ticks, 0.7),
    "aggregate_group": Production(aggregate_group, 2.0),
    "tumbling": Production(_windows("tumbling")),
    "hopping": Production(_windows("hopping")),
    "sliding": Production(_windows("sliding")),
    "session": Production(_windows("session")),
    "unlimited": Production(_windows("unlimited"), 0.7),
    "cogroup": Production(cogroup),
    "aggregate_table": Production(aggregate_table, 1.5),
    "transform_values": Production(transform_values),
    "suppress_until_closed": Production(suppress_until_closed),
    "suppress_for_a_time": Production(suppress_for_a_time),
    "to_stream": Production(to_stream),
    "join_stream": Production(join_stream, 3.0),
    "join_table": Production(join_table, 2.0),
    "join_global": Production(join_global),
    "join_tables": Production(join_tables, 2.5),
    "join_foreign": Production(join_foreign, 2.0),
}
