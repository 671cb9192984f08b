"""API files name kio's classes of the newest version that they serve, for type checkers."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import coordinator.api
from coordinator.api.router import APIS

SERVED_UP_TO = {api.API_KEY: api.VERSIONS[-1] for api in APIS}
KIO_MODULE = re.compile(r"from kio\.schema\.(\w+)\.v(\d+)(?:\.(?:request|response))? import")


def test_requests_and_responses_are_typed_as_those_of_the_newest_version_served() -> None:
    found = {}
    for path in sorted(Path(coordinator.api.__path__[0]).glob("*.py")):
        for name, version in KIO_MODULE.findall(path.read_text()):
            schema = import_module(f"kio.schema.{name}.v{version}.request")
            [key] = {c.__api_key__ for c in vars(schema).values() if hasattr(c, "__api_key__")}
            found[path.name, name] = (int(version), SERVED_UP_TO[key])
    assert len(found) > len(APIS) / 2
    assert {where: pair for where, pair in found.items() if pair[0] != pair[1]} == {}
