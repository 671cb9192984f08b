"""Find where two answers to a case differ: outputs topic by topic in their order, and stores."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tests.differential.description import Case

SHOWN = 6
Answer = Mapping[str, Any]


def differences(case: Case, theirs: Answer, ours: Answer) -> list[str]:
    """Return a line or a few for each topic and each store that differs; none if they agree.

    `theirs` are Kafka Streams'. A case that Kafka Streams refuses or fails at is no case
    (`refused`).
    """
    if "error" in ours:
        return [f"ours failed: {ours['error']}"]
    found = []
    types = _types(case)
    for topic in sorted({*theirs["topics"], *ours["topics"]}):
        wanted, got = theirs["topics"].get(topic, []), ours["topics"].get(topic, [])
        if wanted != got:
            key, value = types.get(topic, ("string", "string"))
            found.append(
                _lists(
                    f"topic {topic}",
                    [shown(each, key, value) for each in wanted],
                    [shown(each, key, value) for each in got],
                )
            )
    for store in sorted(ours["stores"]):
        wanted = sorted(theirs["stores"].get(store, []), key=repr)
        got = ours["stores"][store]
        if wanted != got:
            found.append(_lists(f"store {store}", list(map(str, wanted)), list(map(str, got))))
    return found


def refused(theirs: Answer) -> str | None:
    """Return why Kafka Streams can't run the case, so that nothing can be compared; else None."""
    if "error" not in theirs:
        return None
    stack = str(theirs["stack"])
    causes = [line for line in stack.splitlines() if line.startswith("Caused by: ")]
    return causes[-1] if causes else str(theirs["error"])


def kind(found: Sequence[str]) -> str:
    """Return what sort of difference the first is, which shrinking keeps."""
    if not found:
        return ""
    first = found[0]
    if first.startswith("ours failed"):
        return ":".join(first.split(":")[:2])
    return first.split(" ", 1)[0]


def _types(case: Case) -> dict[str, tuple[str, str]]:
    types = {}
    for step in case.topology.steps:
        if step.op == "to":
            types[str(step.args["topic"])] = (step.key, step.value)
        elif step.op == "to_dynamic":
            base = str(step.args["fn"]).partition(":")[2]
            types[f"{base}-even"] = types[f"{base}-odd"] = (step.key, step.value)
    return types


def _lists(what: str, wanted: list[str], got: list[str]) -> str:
    """Show the two lists from where they begin to differ."""
    same = 0
    while same < min(len(wanted), len(got)) and wanted[same] == got[same]:
        same += 1
    lines = [f"{what}: {len(wanted)} of Kafka Streams, {len(got)} of ours; the first {same} agree"]
    for name, listed in (("Kafka Streams", wanted), ("ours", got)):
        lines.append(f"  {name}:")
        lines += [f"    {each}" for each in listed[same : same + SHOWN]]
        if len(listed) > same + SHOWN:
            lines.append(f"    ... {len(listed) - same - SHOWN} more")
    return "\n".join(lines)


def shown(record: Sequence[Any], key: str, value: str) -> str:
    """Show a record as a person reads it."""
    headers = "".join(
        f" {name}={None if data is None else bytes.fromhex(data).decode()}"
        for name, data in record[3]
    )
    return f"{_shown(record[0], key)}: {_shown(record[1], value)} at {record[2]}{headers}"


def _shown(data: str | None, kind: str) -> str:
    if data is None:
        return "null"
    raw = bytes.fromhex(data)
    try:
        if kind == "int64":
            return str(struct.unpack(">q", raw)[0])
        if kind == "string":
            return repr(raw.decode())
        if kind == "session":
            end, start = struct.unpack(">qq", raw[-16:])
            return f"[{raw[:-16].decode()}@{start}/{end}]"
        start = struct.unpack(">q", raw[-8:])[0]
        return f"[{raw[:-8].decode()}@{start}]"
    except (struct.error, UnicodeDecodeError):
        return raw.hex()
