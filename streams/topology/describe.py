"""Render a topology as text, or as the source of a drawing: Mermaid, Graphviz's dot, JSON.

The text has the lines of Kafka Streams' TopologyDescription, so that tools which read those read
these. Steps come in the order in which records pass them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streams.topology.build import Topology
from streams.topology.description import (
    DescribedSubtopology,
    Step,
    TopologyDescription,
    described,
    to_json,
)


def as_text(topology: TopologyDescription) -> str:
    """Render a topology in the lines of Kafka Streams' TopologyDescription."""
    lines = ["Topologies:"]
    for sub in topology.subtopologies:
        makes_no_tasks = " for global store (will not generate tasks)" if sub.is_global else ""
        lines.append(f"   Sub-topology: {sub.number}{makes_no_tasks}")
        for step in sub.steps:
            lines += _lines(step)
        lines.append("")
    return "\n".join(lines)


def _lines(step: Step) -> Iterator[str]:
    """Yield the lines of one step."""
    match step.kind:
        case "source":
            yield f"    Source: {step.name} (topics: [{step.topic}])"
        case "processor":
            yield f"    Processor: {step.name} (stores: [{', '.join(step.stores)}])"
        case "sink":
            yield f"    Sink: {step.name} (topic: {_topic(step)})"
    if step.kind != "sink":
        yield f"      --> {_names(step.successors)}"
    if step.kind != "source":
        yield f"      <-- {_names(step.predecessors)}"


def _topic(step: Step) -> str:
    """Return a sink's or a source's topic, or the function that chooses it."""
    return step.topic or step.chosen or "none"


def _names(steps: Iterable[str]) -> str:
    return ", ".join(steps) or "none"


class _Names:
    """Gives each thing a short identifier, numbered in the order of the first calls."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """Return the identifier of a thing of this kind and name."""
        return self._given.setdefault((kind, name), f"{kind}{len(self._given)}")


def _edges(topology: TopologyDescription, names: _Names) -> Iterator[tuple[str, str, str]]:
    """Yield the edges of a drawing: from, to, and ">" for records or "-" for the use of a store."""
    for sub in topology.subtopologies:
        for each in sub.steps:
            step = names.of("step", each.name)
            for parent in each.predecessors:
                yield names.of("step", parent), step, ">"
            match each.kind:
                case "source":
                    yield names.of("topic", _topic(each)), step, ">"
                case "sink":
                    yield step, names.of("topic", _topic(each)), ">"
                case "processor":
                    for store in each.stores:
                        yield step, names.of("store", store), "-"


def _drawn_topics(topology: TopologyDescription) -> list[str]:
    """Return all topics that are read or written, sorted.

    For those that a function chooses for each record, the function's name.
    """
    steps = [step for sub in topology.subtopologies for step in sub.steps]
    return sorted({_topic(step) for step in steps if step.kind != "processor"})


def _title(sub: DescribedSubtopology) -> str:
    return f"Global store {sub.number}" if sub.is_global else f"Sub-topology {sub.number}"


def as_mermaid(topology: TopologyDescription) -> str:
    """Render a topology as a Mermaid flowchart."""
    names = _Names()
    lines = ["flowchart TD"]
    for topic in _drawn_topics(topology):
        lines.append(f'  {names.of("topic", topic)}(["{_mermaid(topic)}"])')
    for sub in topology.subtopologies:
        lines.append(f'  subgraph sub{sub.number}["{_title(sub)}"]')
        for step in sub.steps:
            lines.append(f'    {names.of("step", step.name)}["{_mermaid(step.name)}"]')
        for store in sub.stores:
            lines.append(f'    {names.of("store", store.name)}[("{_mermaid(store.name)}")]')
        lines.append("  end")
    arrow = {">": "-->", "-": "---"}
    lines += [f"  {begin} {arrow[kind]} {end}" for begin, end, kind in _edges(topology, names)]
    return "\n".join(lines)


_MERMAID = str.maketrans(
    {"#": "#35;", '"': "#quot;", "`": "#96;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}
)
"""Escapes of what Mermaid would read as a character reference, HTML or Markdown."""


def _mermaid(text: str) -> str:
    return text.translate(_MERMAID)


def as_dot(topology: TopologyDescription) -> str:
    """Render a topology as a graph in Graphviz's dot."""
    names = _Names()
    lines = [f"digraph {_quoted(topology.application_id)} {{", "  node [shape=box];"]
    for topic in _drawn_topics(topology):
        label = _quoted(topic)
        lines.append(f"  {names.of('topic', topic)} [label={label}, shape=oval];")
    for sub in topology.subtopologies:
        lines.append(f"  subgraph cluster_{sub.number} {{")
        lines.append(f"    label={_quoted(_title(sub))};")
        for step in sub.steps:
            lines.append(f"    {names.of('step', step.name)} [label={_quoted(step.name)}];")
        for store in sub.stores:
            label = _quoted(store.name)
            lines.append(f"    {names.of('store', store.name)} [label={label}, shape=cylinder];")
        lines.append("  }")
    end_of = {">": "", "-": " [arrowhead=none]"}
    lines += [f"  {begin} -> {end}{end_of[kind]};" for begin, end, kind in _edges(topology, names)]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FORMATS: dict[str, Callable[[TopologyDescription], str]] = {
    "text": as_text,
    "mermaid": as_mermaid,
    "dot": as_dot,
    "json": to_json,
}


def describe(topology: Topology, format: str = "text") -> str:  # noqa: A002  the public name
    """Render `topology` in one of FORMATS. Raises ValueError for another format."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}")
    return FORMATS[format](described(topology))
