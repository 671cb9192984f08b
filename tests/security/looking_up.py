"""Build an application that counts and copies, and looks each record up in a global table.

Its workers copy the table only while a file `open` is in their directory, and tell by a file
`reading` that they wait for it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from streams import App, serdes
from tests.processes import HANG_LIMIT_S

_LOOK_S = 0.02


def build_app(name: str, directory: Path) -> App:
    """Return the application with the topics of `CountingApplication`, `-names` and `-found`.

    `-found` gets what the table says of each record, and the id of the process that has looked.
    """

    def decode_when_open(data: bytes) -> str:
        (directory / "reading").touch()
        until_s = time.monotonic() + HANG_LIMIT_S
        while not (directory / "open").exists():
            if time.monotonic() > until_s:
                raise TimeoutError("nobody has let the table be copied")
            time.sleep(_LOOK_S)
        return data.decode()

    text = serdes.of(str.encode, decode_when_open, name="text")
    app = App(
        name,
        state_dir=directory / "state",
        commit_interval_ms=100,
        heartbeat_interval_ms=500,
    )
    names = app.global_table(f"{name}-names", key=serdes.string, value=text)
    source = app.stream(f"{name}-in", key=serdes.string, value=serdes.string)
    source.group_by_key().count(store="counts").to_stream().to(f"{name}-counts")
    copies = source.join(names, lambda value, _: value, key=lambda key, _: key)
    copies.to(f"{name}-copies", value=serdes.string)
    found = source.join(names, lambda _, found: f"{found} by {os.getpid()}", key=lambda key, _: key)
    found.to(f"{name}-found", value=serdes.string)
    return app
