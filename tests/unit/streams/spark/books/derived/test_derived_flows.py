"""What inputs determine of each step's results, read off a topology."""

from __future__ import annotations

from streams import App, Store, serdes, until_time_limit, windows
from streams.spark.books.derived.flows import Determined, Flow, Flows, is_one_by_one
from streams.topology.nodes import Node


def described() -> tuple[App, dict[str, Flow]]:
    app = App("flows")
    source = app.stream("in", key=serdes.string, value=serdes.int64)
    source.filter(lambda _, value: value, name="kept").to("kept")
    group = source.group_by_key()
    counts = group.count(store="counts", name="counted")
    counts.to_stream(name="updates").map(lambda k, v: (k, v), name="mapped")
    counts.suppress(until_time_limit(1_000), name="held")
    group.count(store=Store.persistent("each", caching=False), name="uncached")
    group.windowed_by(windows.tumbling(10)).count(store="w", emit="on_close", name="closing")
    other = app.stream("other", key=serdes.string, value=serdes.int64)
    both = source.merge(other, name="both")
    both.group_by_key().reduce(lambda old, new: new, store="last", name="reduced")
    [sub] = app.topology().subtopologies
    flows = Flows(sub)
    return app, {node.name: flows.of(node) for node in sub.nodes}


def test_each_record_is_determined_before_anything_is_kept() -> None:
    _, flows = described()
    assert flows["kept"].determined is flows["both"].determined is Determined.EACH


def test_of_a_cached_table_the_last_row_of_a_key_is() -> None:
    _, flows = described()
    assert flows["counted"].determined is flows["updates"].determined is Determined.LAST
    assert flows["uncached"].determined is flows["closing"].determined is Determined.EACH


def test_what_depends_on_commits_or_on_an_order_between_topics_names_the_step() -> None:
    _, flows = described()
    for step, why in (("mapped", "commits"), ("held", "commits"), ("reduced", "commutative")):
        assert flows[step].determined is Determined.UNKNOWN
        assert flows[step].step == step
        assert why in flows[step].why


def test_where_the_order_of_a_topic_is_lost_so_is_what_depends_on_it() -> None:
    app, _ = described()
    [sub] = app.topology().subtopologies
    flows = Flows(sub, shuffled={"in"})
    found: dict[str, Node] = {node.name: node for node in sub.nodes}
    assert flows.of(found["uncached"]).determined is Determined.UNKNOWN
    assert "'in'" in flows.of(found["uncached"]).why
    assert flows.of(found["kept"]).determined is Determined.EACH
    assert is_one_by_one(found["kept"])
    assert not is_one_by_one(found["uncached"])
