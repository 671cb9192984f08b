"""Test how many partitions a topic is said to have had that is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.former_counts import (
    derive_former_counts,
    list_equally_partitioned_topics,
    list_partitions_on_disk,
)


def test_partitions_that_somebody_has_read_were_there() -> None:
    witnesses = [Partition("lines", 4), Partition("lines", 1), Partition("other", 9)]
    assert derive_former_counts(["lines"], witnesses, {}, {}) == {"lines": 5}
    assert derive_former_counts(["lines"], [], {}, {"other": 3}) == {}


def test_what_was_made_from_a_topic_shows_its_partitions() -> None:
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    lines.group_by_key().count(store="by-key")
    lines.group_by(lambda _, value: value, key=serdes.string).count(store="by-value")
    companions = list_equally_partitioned_topics(app.topology())
    assert companions["lines"] == {"a-by-key-changelog", "a-by-value-repartition"}
    counts = {"a-by-key-changelog": 6, "out": 8}
    assert derive_former_counts(["lines"], [Partition("lines", 1)], companions, counts) == {
        "lines": 6
    }


def test_topics_that_were_made_again_show_nothing_of_each_other() -> None:
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    names = app.table("names", key=serdes.string, value=serdes.string)
    joined = lines.join(names, lambda line, name: line + name, value=serdes.string)
    joined.group_by_key().count(store="n")
    companions = list_equally_partitioned_topics(app.topology())
    for counts in ({"lines": 3, "names": 6}, {"lines": 6, "names": 6}):
        existing = {**counts, "a-n-changelog": 3}
        assert derive_former_counts(["lines", "names"], [], companions, existing) == {
            "lines": 3,
            "names": 3,
        }


def test_a_number_that_was_declared_shows_nothing_of_the_input() -> None:
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    lines.repartition(partitions=20, name="more").to("out")
    assert list_equally_partitioned_topics(app.topology())["lines"] == set()


def test_topics_that_meet_by_key_had_as_many() -> None:
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string)
    names = app.table("names", key=serdes.string, value=serdes.string)
    lines.join(names, lambda line, name: line + name, value=serdes.string).to("out")
    assert "names" in list_equally_partitioned_topics(app.topology())["lines"]


def test_directories_of_tasks_tell_what_they_read(tmp_path: Path) -> None:
    assert list(list_partitions_on_disk(tmp_path)) == []
    kept = {"0": {"sources": ["lines", "names"], "stores": ["c"]}}
    (tmp_path / "subtopologies.json").write_text(json.dumps(kept))
    for name in ("0_3", "process-1", "5_0"):
        (tmp_path / name).mkdir()
    assert sorted(list_partitions_on_disk(tmp_path)) == [
        Partition("lines", 3),
        Partition("names", 3),
    ]


class FactsOfOffsets(ApplicationFacts):
    """Knows committed offsets, and no members."""

    def committed(self) -> Mapping[Partition, Any]:
        return {Partition("lines", 2): None}

    def members(self) -> Any:
        return SimpleNamespace(assignments={})


@pytest.mark.parametrize("text", ["{", "[]", '{"0": []}', '{"0": {"stores": []}}', "\udcff"])
def test_a_damaged_file_on_disk_hides_no_other_witness(tmp_path: Path, text: str) -> None:
    (tmp_path / "a" / "0_7").mkdir(parents=True)
    file = tmp_path / "a" / "subtopologies.json"
    file.write_text(text, errors="surrogateescape")
    cluster: Any = SimpleNamespace(clients=lambda: SimpleNamespace(partition_counts={}))
    facts = FactsOfOffsets(cluster, "a", App("a", state_dir=tmp_path).config)
    assert facts.derive_former_counts(["lines"]) == {"lines": 3}
