"""Test that a topology is rendered as text and as pictures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from streams import App, Processor, Store, serdes


class Looking(Processor):
    stores = ("counts", Store.in_memory("own", key=serdes.string, value=serdes.bytes, logged=False))


def word_count() -> App:
    app = App("words")
    lines = app.stream("lines", key=serdes.string, value=serdes.string, name="read")
    words = lines.flat_map_values(str.split, name="split")
    groups = words.group_by(lambda _, word: word, key=serdes.string, name="by-word")
    groups.count(store="counts", name="count").to_stream(name="updates").to("out", name="write")
    asked = app.stream("ask", key=serdes.string, value=serdes.string, name="asked")
    asked.process(Looking, name="look")
    return app


MERMAID = """\
flowchart TD
  topic0(["ask"])
  topic1(["lines"])
  topic2(["out"])
  topic3(["words-by-word-repartition"])
  subgraph sub0["Sub-topology 0"]
    step4["read"]
    step5["split"]
    step6["by-word"]
    step7["by-word-repartition-filter"]
    step8["by-word-repartition-sink"]
  end
  subgraph sub1["Sub-topology 1"]
    step9["by-word-repartition-source"]
    step10["count"]
    step11["updates"]
    step12["write"]
    step13["asked"]
    step14["look"]
    store15[("counts")]
    store16[("own")]
  end
  topic1 --> step4
  step4 --> step5
  step5 --> step6
  step6 --> step7
  step7 --> step8
  step8 --> topic3
  topic3 --> step9
  step9 --> step10
  step10 --- store15
  step10 --> step11
  step11 --> step12
  step12 --> topic2
  topic0 --> step13
  step13 --> step14
  step14 --- store15
  step14 --- store16"""


def test_mermaid_shows_topics_steps_and_stores() -> None:
    assert word_count().describe(format="mermaid") == MERMAID


def test_dot_is_the_same_for_graphviz() -> None:
    dot = word_count().describe(format="dot")
    for line in (
        'digraph "words" {',
        "  subgraph cluster_1 {",
        '    step13 [label="asked"];',
        '    store15 [label="counts", shape=cylinder];',
        "  step8 -> topic3;",
        "  step14 -> store15 [arrowhead=none];",
    ):
        assert line in dot.splitlines()
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=dot.encode(), check=True, capture_output=True)


def test_json_has_all_of_it_for_programs() -> None:
    found: dict[str, Any] = json.loads(word_count().describe(format="json"))
    assert found["input_topics"] == ["ask", "lines"]
    assert found["repartition_topics"] == [{"name": "words-by-word-repartition"}]
    first, second = found["subtopologies"]
    assert first["steps"][0] == {
        "kind": "source",
        "name": "read",
        "predecessors": [],
        "successors": ["split"],
        "stores": [],
        "topic": "lines",
        "internal": False,
        "key": "string",
        "value": "string",
    }
    assert second["steps"][1] == {
        "kind": "processor",
        "name": "count",
        "operator": "KSTREAM-AGGREGATE",
        "predecessors": ["by-word-repartition-source"],
        "successors": ["updates"],
        "stores": ["counts"],
        "internal": False,
    }
    assert second["stores"][0] == {
        "name": "counts",
        "kind": "key-value",
        "key": "string",
        "value": "int64",
        "persistent": True,
        "logged": True,
        "caching": True,
        "changelog": "words-counts-changelog",
        "source_is_changelog": False,
        "topic_settings": {},
        "retain_duplicates": False,
    }
    assert [(store["name"], store.get("changelog")) for store in second["stores"]] == [
        ("counts", "words-counts-changelog"),
        ("own", None),
    ]


TEXT = """\
Topologies:
   Sub-topology: 0
    Source: read (topics: [lines])
      --> split
    Processor: split (stores: [])
      --> by-word
      <-- read
    Processor: by-word (stores: [])
      --> by-word-repartition-filter
      <-- split
    Processor: by-word-repartition-filter (stores: [])
      --> by-word-repartition-sink
      <-- by-word
    Sink: by-word-repartition-sink (topic: words-by-word-repartition)
      <-- by-word-repartition-filter

   Sub-topology: 1
    Source: by-word-repartition-source (topics: [words-by-word-repartition])
      --> count
    Processor: count (stores: [counts])
      --> updates
      <-- by-word-repartition-source
    Processor: updates (stores: [])
      --> write
      <-- count
    Sink: write (topic: out)
      <-- updates
    Source: asked (topics: [ask])
      --> look
    Processor: look (stores: [counts, own])
      --> none
      <-- asked
"""


def test_text_has_the_lines_of_kafka_streams_and_is_the_default() -> None:
    assert word_count().describe() == TEXT
    assert word_count().describe(format="text") == TEXT


HOSTILE = """the "asked" #1; `end` <b> & [x] {y}"""


def drawn() -> App:
    """Build an application with chosen topics, a global table, and a name that needs escaping."""
    app = App("a")
    lines = app.stream("lines", key=serdes.string, value=serdes.string, name="read")
    app.global_table("rates", key=serdes.string, value=serdes.string, store="rates", name="all")
    lines.to(by_country, name="write")
    lines.to(by_hostile_name, name="write-elsewhere")
    return app


def by_country(record: Any) -> str:
    return "out"


def by_hostile_name(record: Any) -> str:
    return "out"


by_hostile_name.__qualname__ = HOSTILE


def test_text_shows_global_stores_and_topics_that_a_function_chooses() -> None:
    lines = drawn().describe().splitlines()
    assert "    Sink: write (topic: chosen by by_country)" in lines
    begin = lines.index("   Sub-topology: 1 for global store (will not generate tasks)")
    assert lines[begin + 1 :] == [
        "    Source: all-source (topics: [rates])",
        "      --> all",
        "    Processor: all (stores: [rates])",
        "      --> none",
        "      <-- all-source",
    ]


def test_names_that_mermaid_and_dot_would_stumble_over_are_escaped() -> None:
    mermaid = drawn().describe(format="mermaid")
    assert (
        'chosen by the #quot;asked#quot; #35;1; #96;end#96; #lt;b#gt; #amp; [x] {y}"])' in mermaid
    )  # as Mermaid 11 reads it: entities are decoded when it is drawn
    dot = drawn().describe(format="dot")
    assert '[label="chosen by the \\"asked\\" #1; `end` <b> & [x] {y}", shape=oval]' in dot


@pytest.mark.parametrize("make", [word_count, drawn])
def test_whatever_an_edge_leads_to_is_drawn(make: Callable[[], App]) -> None:
    thing, edge = r"(?:step|topic|store)\d+", r" (?:-->|---|->) "
    for drawing in ("mermaid", "dot"):
        text = make().describe(format=drawing)
        declared = set(re.findall(rf"^ +({thing}) ?[\[(]", text, re.MULTILINE))
        ends = {end for pair in re.findall(rf"({thing}){edge}({thing})", text) for end in pair}
        assert ends == declared


def test_another_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="format='svg' is not one of 'text', 'mermaid', 'dot',"):
        word_count().describe(format="svg")  # type: ignore[arg-type]


def test_a_format_that_is_no_text_is_refused_the_same() -> None:
    with pytest.raises(ValueError, match=r"format=\['text'\] is not one of"):
        word_count().describe(["text"])  # type: ignore[arg-type]
