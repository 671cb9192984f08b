"""Record logs of real faults: `python -m tests.logs.record [NAME...]`.

A name is that of a fault in `own_faults` or, as `java-NAME`, in `java_faults`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests.logs import java_faults, own_faults
from tests.logs.recorded_text import keep_log

NAMES = (*own_faults.FAULTS, *(f"java-{name}" for name in java_faults.FAULTS))


def record(name: str) -> Mapping[str, str]:
    """Plant a fault and return the logs by the names of their recordings."""
    if name in own_faults.FAULTS:
        return {name: own_faults.FAULTS[name]()}
    fault = name.removeprefix("java-")
    application, broker = java_faults.FAULTS[fault]()
    return {f"streams-{fault}": application, f"kafka-{fault}": broker}


def main(names: list[str]) -> int:
    """Record the faults that are named, or all, and return the exit status."""
    status = 0
    for name in names or NAMES:
        try:
            for recording, text in record(name).items():
                if text:
                    print(f"{recording}: {keep_log(recording, text)} lines", flush=True)
        except Exception as error:
            print(f"{name}: {error!r}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
