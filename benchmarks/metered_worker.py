"""Run one application to its last commit at a recording level, and print its processor seconds.

    python -m benchmarks.metered_worker SERVERS INPUT OUTPUT map|count off|info|debug RECORDS STATE

A process of its own has librdkafka's threads and nothing else. The seconds are those from the first
record on, so the start is not among them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, get_args

from benchmarks.recording_levels import Level, bind_at, run_at
from benchmarks.runs import close_when_done, describe_operator
from streams import App

_LOOK_EVERY_S = 0.02
"""A look at the counters costs processor time too, so there are few."""


def main() -> None:
    """Process the input and print the processor seconds."""
    servers, source, output, operator, level, records, state = sys.argv[1:]
    (chosen,) = (each for each in get_args(Level) if each == level)
    settings: dict[str, Any] = {} if chosen == "off" else {"metrics_recording_level": chosen}
    app = App(f"metered-{output}", bootstrap_servers=servers, state_dir=Path(state), **settings)
    describe_operator(app, operator, source, output)
    with run_at(chosen), bind_at(chosen), app.start() as running:
        seconds = close_when_done(
            running, int(records), look_every_s=_LOOK_EVERY_S, read_clock_s=time.process_time
        )
    print(seconds)


if __name__ == "__main__":
    main()
