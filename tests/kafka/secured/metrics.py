"""Read a broker's own counts of authentications through the JVM's attach interface.

No port is opened for it: `Metrics.java` attaches to the process by its id, as `jcmd` does.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.processes import HANG_LIMIT_S, StartFailed

SOURCE = Path(__file__).with_name("Metrics.java")


def read_authentication_count(pid: int, listener: str, attribute: str) -> int:
    """Return the sum of one of Kafka's authentication metrics over a listener's network threads.

    Attributes are `successful-authentication-total`, `failed-authentication-total` and
    `successful-reauthentication-total`.
    """
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", str(SOURCE), str(pid), listener, attribute],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise StartFailed(f"metrics of {listener}: exit {done.returncode}\n{done.stderr}")
    return int(done.stdout)
