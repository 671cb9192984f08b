"""Read faults from a file, for a broker that runs as a process: TOML, or JSON by its suffix.

    [[request]]                     [[disk]]
    action = "lose-answer"          action = "full"
    api = "EndTxn"                  bytes_left = 1_000_000
    times = 1

The fields are those of `faults.RequestFault` and `faults.DiskFault`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from coordinator.faults import DiskFault, Fault, RequestFault, WrongFault

_FAULT_TYPES: dict[str, type[RequestFault] | type[DiskFault]] = {
    "request": RequestFault,
    "disk": DiskFault,
}


def read_faults(path: Path) -> list[Fault]:
    """Read the faults of a file, in its order.

    Raises: WrongFault, which names the file and the entry.
    """
    import tomllib  # imported here: a broker without faults starts sooner

    try:
        text = path.read_text()
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise WrongFault(f"{path} can't be read: {error.strerror}") from error
    except ValueError as error:
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise WrongFault(f"{path} is no {kind}: {error}") from error
    return list(_parse_faults(path, content))


def _parse_faults(path: Path, content: object) -> Iterator[Fault]:
    if not isinstance(content, dict):
        raise WrongFault(f"{path}: must have lists called request and disk")
    for name, entries in content.items():
        kind = _FAULT_TYPES.get(name)
        if kind is None or not isinstance(entries, list):
            raise WrongFault(f"{path}: {name}: must be lists called request and disk")
        for number, entry in enumerate(entries, start=1):
            try:
                yield _parse_fault(kind, entry)
            except WrongFault as error:
                raise WrongFault(f"{path}: {name} {number}: {error}") from error


def _parse_fault(kind: type[RequestFault] | type[DiskFault], entry: object) -> Fault:
    if not isinstance(entry, dict):
        raise WrongFault(f"{entry!r} has no fields")
    known = [field.name for field in fields(kind) if field.init]
    for name in entry:
        if name not in known:
            raise WrongFault(f"{name} is not one of {', '.join(known)}")
    if "action" not in entry:
        raise WrongFault("no action")
    return kind(**entry)
