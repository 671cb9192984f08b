"""Render a topology as text, or as the source of a drawing: Mermaid, Graphviz's dot, JSON.

The text has the lines of Kafka Streams' TopologyDescription, so that tools which read those read
these. Steps come in the order in which records pass them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from streams.topics import is_pattern, parse_pattern
from streams.topology.build import Topology
from streams.topology.description import (
    DescribedStep,
    DescribedSubtopology,
    TopologyDescription,
    describe_topology,
    description_to_json,
)

FromName: TypeAlias = str
ToName: TypeAlias = str
EdgeMark: TypeAlias = str


def render_text(topology: TopologyDescription) -> str:
    """Render a topology in the lines of Kafka Streams' TopologyDescription."""
    lines = ["Topologies:"]
    for sub in topology.subtopologies:
        makes_no_tasks = " for global store (will not generate tasks)" if sub.is_global else ""
        lines.append(f"   Sub-topology: {sub.number}{makes_no_tasks}")
        for step in sub.steps:
            lines += _render_step_lines(step)
        lines.append("")
    return "\n".join(lines)


def _render_step_lines(step: DescribedStep) -> Iterator[str]:
    """Yield the lines of one step."""
    match step.kind:
        case "source":
            yield f"    Source: {step.name} (topics: {_label_source(step)})"
        case "processor":
            yield f"    Processor: {step.name} (stores: [{', '.join(step.stores)}])"
        case "sink":
            yield f"    Sink: {step.name} (topic: {_label_topic(step)})"
    if step.kind != "sink":
        yield f"      --> {_join_names(step.successors)}"
    if step.kind != "source":
        yield f"      <-- {_join_names(step.predecessors)}"


def _label_source(step: DescribedStep) -> str:
    """Return a source's topic, or the expression of its pattern, as Kafka Streams shows them."""
    topic = step.topic or "none"
    return parse_pattern(topic).expression if is_pattern(topic) else f"[{topic}]"


def _label_topic(step: DescribedStep) -> str:
    """Return a sink's or a source's topic, or the function that chooses it."""
    return step.topic or step.chosen or "none"


def _join_names(steps: Iterable[str]) -> str:
    return ", ".join(steps) or "none"


class _Identifiers:
    """Gives each thing a short identifier, numbered in the order of the first calls."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def identifier_of(self, kind: str, name: str) -> str:
        """Return the identifier of a thing of this kind and name."""
        return self._given.setdefault((kind, name), f"{kind}{len(self._given)}")


def _list_edges(
    topology: TopologyDescription, names: _Identifiers
) -> Iterator[tuple[FromName, ToName, EdgeMark]]:
    """Yield the edges of a drawing: from, to, and ">" for records or "-" for the use of a store."""
    for sub in topology.subtopologies:
        for each in sub.steps:
            step = names.identifier_of("step", each.name)
            for parent in each.predecessors:
                yield names.identifier_of("step", parent), step, ">"
            match each.kind:
                case "source":
                    yield names.identifier_of("topic", _label_topic(each)), step, ">"
                case "sink":
                    yield step, names.identifier_of("topic", _label_topic(each)), ">"
                case "processor":
                    for store in each.stores:
                        yield step, names.identifier_of("store", store), "-"


def _list_topics(topology: TopologyDescription) -> list[str]:
    """Return all topics that are read or written, sorted.

    For those that a function chooses for each record, the function's name.
    """
    steps = [step for sub in topology.subtopologies for step in sub.steps]
    return sorted({_label_topic(step) for step in steps if step.kind != "processor"})


def _format_subtopology_title(sub: DescribedSubtopology) -> str:
    return f"Global store {sub.number}" if sub.is_global else f"Sub-topology {sub.number}"


def render_mermaid(topology: TopologyDescription) -> str:
    """Render a topology as a Mermaid flowchart."""
    names = _Identifiers()
    lines = ["flowchart TD"]
    for topic in _list_topics(topology):
        lines.append(f'  {names.identifier_of("topic", topic)}(["{_escape_mermaid(topic)}"])')
    for sub in topology.subtopologies:
        lines.append(f'  subgraph sub{sub.number}["{_format_subtopology_title(sub)}"]')
        for step in sub.steps:
            lines.append(
                f'    {names.identifier_of("step", step.name)}["{_escape_mermaid(step.name)}"]'
            )
        for store in sub.stores:
            lines.append(
                f'    {names.identifier_of("store", store.name)}[("{_escape_mermaid(store.name)}")]'
            )
        lines.append("  end")
    arrow = {">": "-->", "-": "---"}
    lines += [f"  {begin} {arrow[kind]} {end}" for begin, end, kind in _list_edges(topology, names)]
    return "\n".join(lines)


_MERMAID_ESCAPES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "`": "#96;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
)
"""Escapes of what Mermaid would read as a character reference, HTML or Markdown."""


def _escape_mermaid(text: str) -> str:
    return text.translate(_MERMAID_ESCAPES)


def render_dot(topology: TopologyDescription) -> str:
    """Render a topology as a graph in Graphviz's dot."""
    names = _Identifiers()
    lines = [f"digraph {_quote_dot(topology.application_id)} {{", "  node [shape=box];"]
    for topic in _list_topics(topology):
        label = _quote_dot(topic)
        lines.append(f"  {names.identifier_of('topic', topic)} [label={label}, shape=oval];")
    for sub in topology.subtopologies:
        lines.append(f"  subgraph cluster_{sub.number} {{")
        lines.append(f"    label={_quote_dot(_format_subtopology_title(sub))};")
        for step in sub.steps:
            lines.append(
                f"    {names.identifier_of('step', step.name)} [label={_quote_dot(step.name)}];"
            )
        for store in sub.stores:
            label = _quote_dot(store.name)
            lines.append(
                f"    {names.identifier_of('store', store.name)} [label={label}, shape=cylinder];"
            )
        lines.append("  }")
    end_of = {">": "", "-": " [arrowhead=none]"}
    lines += [
        f"  {begin} -> {end}{end_of[kind]};" for begin, end, kind in _list_edges(topology, names)
    ]
    return "\n".join([*lines, "}"])


def _quote_dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FORMATS: dict[str, Callable[[TopologyDescription], str]] = {
    "text": render_text,
    "mermaid": render_mermaid,
    "dot": render_dot,
    "json": description_to_json,
}


def render_topology(topology: Topology, format: str = "text") -> str:  # noqa: A002  the public name
    """Render `topology` in one of FORMATS. Raises ValueError for another format."""
    if format not in tuple(FORMATS):  # it may be unhashable
        raise ValueError(f"format={format!r} is not one of {', '.join(map(repr, FORMATS))}")
    return FORMATS[format](describe_topology(topology))
