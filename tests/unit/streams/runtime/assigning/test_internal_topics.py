"""Test with which settings internal topics are created."""

from __future__ import annotations

from streams import App, Store, serdes
from streams.runtime.assigning.internal_topics import list_topic_settings


def test_topic_defaults_go_over_what_a_topic_holds_and_below_what_its_store_declares() -> None:
    app = App("a")
    lines = app.stream("in", key=serdes.string, value=serdes.string)
    moved = lines.select_key(lambda key, value: value, key=serdes.string)
    moved.group_by_key().count(store=Store.persistent("plain"))
    lines.group_by_key().count(
        store=Store.persistent("own", logged={"min.insync.replicas": 1, "segment.ms": 5})
    )
    defaults = {"min.insync.replicas": "2", "segment.bytes": "7"}
    settings = list_topic_settings(app.topology(), has_ledger=True, defaults=defaults)
    assert len(settings) == 4
    assert {topic: each["min.insync.replicas"] for topic, each in settings.items()} == {
        **dict.fromkeys(settings, "2"),
        "a-own-changelog": "1",
    }
    assert {each["segment.bytes"] for each in settings.values()} == {"7"}
    assert settings["a-plain-changelog"]["cleanup.policy"] == "compact"
