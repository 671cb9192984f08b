"""Test how far the inputs determine the results of each step of a topology."""

from __future__ import annotations

from streams import App, Store, serdes, until_time_limit, windows
from streams.graph.nodes import Node
from streams.spark.reconciliation.derivation.determinism import (
    Determinism,
    DeterminismAnalysis,
    StepDeterminism,
    is_stateless,
)


def described() -> tuple[App, dict[str, StepDeterminism]]:
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
    flows = DeterminismAnalysis(sub)
    return app, {node.name: flows.find_step_determinism(node) for node in sub.nodes}


def test_each_record_is_determined_before_anything_is_kept() -> None:
    _, flows = described()
    assert flows["kept"].determinism is flows["both"].determinism is Determinism.EACH


def test_of_a_cached_table_the_last_row_of_a_key_is() -> None:
    _, flows = described()
    assert flows["counted"].determinism is flows["updates"].determinism is Determinism.LAST
    assert flows["uncached"].determinism is flows["closing"].determinism is Determinism.EACH


def test_what_depends_on_commits_or_on_an_order_between_topics_names_the_step() -> None:
    _, flows = described()
    for step, why in (("mapped", "commits"), ("held", "commits"), ("reduced", "commutative")):
        assert flows[step].determinism is Determinism.UNKNOWN
        assert flows[step].step == step
        assert why in flows[step].reason


def test_where_the_order_of_a_topic_is_lost_so_is_what_depends_on_it() -> None:
    app, _ = described()
    [sub] = app.topology().subtopologies
    flows = DeterminismAnalysis(sub, unordered_topics={"in"})
    found: dict[str, Node] = {node.name: node for node in sub.nodes}
    assert flows.find_step_determinism(found["uncached"]).determinism is Determinism.UNKNOWN
    assert "'in'" in flows.find_step_determinism(found["uncached"]).reason
    assert flows.find_step_determinism(found["kept"]).determinism is Determinism.EACH
    assert is_stateless(found["kept"])
    assert not is_stateless(found["uncached"])
