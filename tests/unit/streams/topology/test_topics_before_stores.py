"""Test which repartition topics are found to lead to a store."""

from __future__ import annotations

from streams import App, serdes
from streams.dsl.stream import Stream
from streams.topology.topics_before_stores import find_repartition_topics_before_stores


def read(app: App, topic: str = "in") -> Stream[str, str]:
    return app.stream(topic, key=serdes.string, value=serdes.string)


def test_a_topic_before_a_count_leads_to_a_store() -> None:
    app = App("a")
    read(app).group_by(lambda k, v: v, key=serdes.string).count(store="c")
    assert find_repartition_topics_before_stores(app.topology()) == {0: {"a-c-repartition"}}


def test_all_topics_of_a_chain_lead_to_the_store_at_its_end() -> None:
    app = App("a")
    middle = read(app).repartition(name="first").map_values(str.upper, value=serdes.string)
    middle.group_by(lambda k, v: v, key=serdes.string).count(store="c")
    assert find_repartition_topics_before_stores(app.topology()) == {
        0: {"a-first-repartition"},
        1: {"a-c-repartition"},
    }


def test_a_topic_that_is_written_and_read_by_name_passes_records_on_to_a_store() -> None:
    app = App("a")
    read(app).repartition(name="first").to("between")
    read(app, "between").group_by_key().count(store="c")
    assert find_repartition_topics_before_stores(app.topology()) == {0: {"a-first-repartition"}}


def test_without_a_store_behind_it_a_topic_leads_to_none() -> None:
    app = App("a")
    read(app).repartition(name="first").to("out")
    read(app, "other").group_by_key().count(store="c").to_stream().to("counts")
    assert find_repartition_topics_before_stores(app.topology()) == {}


def test_topics_that_go_round_are_followed_once() -> None:
    app = App("a")
    rows = app.table("in", key=serdes.string, value=serdes.string, store="rows")
    others = app.table("more", key=serdes.string, value=serdes.string, store="others")
    rows.join(others, max, foreign_key=lambda key, row: row[:1], value=serdes.string, name="j")
    assert find_repartition_topics_before_stores(app.topology()).keys() == {0, 1}
