"""A topology as text, or as what draws it: Mermaid, Graphviz's dot, JSON.

Sub-topologies with their steps and stores, and the topics between them: `internal` ones are the
application's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from streams.topology.build import Subtopology, Topology
from streams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode


def as_text(topology: Topology) -> str:
    lines = [f"Topology: {topology.application_id}"]
    for sub in topology.subtopologies:
        lines.append(f"  Sub-topology: {sub.number}")
        for node in sub.nodes:
            lines += _described(node, sub)
    return "\n".join(lines)


def _described(node: Node, sub: Subtopology) -> Iterator[str]:
    match node:
        case SourceNode():
            yield f"    Source: {node.name} (topic: {node.topic})"
        case SinkNode():
            yield f"    Sink: {node.name} (topic: {node.topic_name})"
        case ProcessorNode():
            yield f"    Processor: {node.name} (stores: [{', '.join(node.stores)}])"
    after = [other.name for other in sub.nodes if node in other.parents]
    before = [parent.name for parent in node.parents]
    if after:
        yield f"      --> {', '.join(after)}"
    if before:
        yield f"      <-- {', '.join(before)}"


def as_data(topology: Topology) -> dict[str, Any]:
    """What `as_json` writes: plain lists and dictionaries."""
    return {
        "application_id": topology.application_id,
        "input_topics": list(topology.input_topics),
        "repartition_topics": sorted(topology.repartition_topics),
        "subtopologies": [
            {
                "number": sub.number,
                "steps": [_step(node) for node in sub.nodes],
                "stores": [
                    {
                        "name": spec.name,
                        "kind": str(spec.kind),
                        "persistent": spec.persistent,
                        "key": spec.key.name,
                        "value": spec.value.name,
                        "changelog": topology.changelog(spec.name) if spec.logged else None,
                    }
                    for spec in sub.stores
                ],
            }
            for sub in topology.subtopologies
        ],
    }


def _step(node: Node) -> dict[str, Any]:
    step: dict[str, Any] = {"name": node.name, "after": [parent.name for parent in node.parents]}
    match node:
        case SourceNode() | SinkNode():
            source = isinstance(node, SourceNode)
            serdes = {"key": node.key.name, "value": node.value.name}
            topic = node.topic if isinstance(node, SourceNode) else node.topic_name
            kind = "source" if source else "sink"
            return {"kind": kind, **step, "topic": topic, "internal": node.internal, **serdes}
        case ProcessorNode():
            return {"kind": "processor", **step, "stores": list(node.stores)}
    raise AssertionError(f"a step of an unknown kind: {node}")


def as_json(topology: Topology) -> str:
    return json.dumps(as_data(topology), indent=2)


class _Names:
    """Short identifiers, each for one thing, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        return self._given.setdefault((kind, name), f"{kind}{len(self._given)}")


def _edges(topology: Topology, names: _Names) -> Iterator[tuple[str, str, str]]:
    """From, to, and what: a record's way (">") or the use of a store ("-")."""
    for sub in topology.subtopologies:
        for node in sub.nodes:
            step = names.of("step", node.name)
            for parent in node.parents:
                yield names.of("step", parent.name), step, ">"
            match node:
                case SourceNode():
                    yield names.of("topic", node.topic), step, ">"
                case SinkNode():
                    yield step, names.of("topic", node.topic_name), ">"
                case ProcessorNode():
                    for store in node.stores:
                        yield step, names.of("store", store), "-"


def _topics(topology: Topology) -> list[str]:
    nodes = [node for sub in topology.subtopologies for node in sub.nodes]
    read = {node.topic for node in nodes if isinstance(node, SourceNode)}
    return sorted(read | {node.topic_name for node in nodes if isinstance(node, SinkNode)})


def as_mermaid(topology: Topology) -> str:
    names = _Names()
    lines = ["flowchart TD"]
    for topic in _topics(topology):
        lines.append(f'  {names.of("topic", topic)}(["{_mermaid(topic)}"])')
    for sub in topology.subtopologies:
        lines.append(f'  subgraph sub{sub.number}["Sub-topology {sub.number}"]')
        for node in sub.nodes:
            lines.append(f'    {names.of("step", node.name)}["{_mermaid(node.name)}"]')
        for spec in sub.stores:
            lines.append(f'    {names.of("store", spec.name)}[("{_mermaid(spec.name)}")]')
        lines.append("  end")
    arrow = {">": "-->", "-": "---"}
    lines += [f"  {begin} {arrow[kind]} {end}" for begin, end, kind in _edges(topology, names)]
    return "\n".join(lines)


def _mermaid(text: str) -> str:
    return text.replace('"', "#quot;")


def as_dot(topology: Topology) -> str:
    names = _Names()
    lines = [f"digraph {_quoted(topology.application_id)} {{", "  node [shape=box];"]
    for topic in _topics(topology):
        label = _quoted(topic)
        lines.append(f"  {names.of('topic', topic)} [label={label}, shape=oval];")
    for sub in topology.subtopologies:
        lines.append(f"  subgraph cluster_{sub.number} {{")
        lines.append(f'    label="Sub-topology {sub.number}";')
        for node in sub.nodes:
            lines.append(f"    {names.of('step', node.name)} [label={_quoted(node.name)}];")
        for spec in sub.stores:
            label = _quoted(spec.name)
            lines.append(f"    {names.of('store', spec.name)} [label={label}, shape=cylinder];")
        lines.append("  }")
    end_of = {">": "", "-": " [arrowhead=none]"}
    lines += [f"  {begin} -> {end}{end_of[kind]};" for begin, end, kind in _edges(topology, names)]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


FORMATS: dict[str, Callable[[Topology], str]] = {
    "text": as_text,
    "mermaid": as_mermaid,
    "dot": as_dot,
    "json": as_json,
}


def describe(topology: Topology, format: str = "text") -> str:  # noqa: A002  the public name
    """`topology` in one of FORMATS. Raises ValueError for another."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r} is none of {', '.join(FORMATS)}")
    return FORMATS[format](topology)
