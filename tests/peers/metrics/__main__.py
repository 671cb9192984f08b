"""List all metrics of a running Kafka Streams again: `python -m tests.peers.metrics`.

`ListMetrics.java` runs an application on a real Kafka of the same version. The list is kept in
`kafka_streams_metrics.json`, and compared with ours by
tests/unit/streams/monitoring/test_kafka_streams_names.py.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import closing
from typing import Any

from tests.differential.peer import JARS
from tests.kafka.server import JVM_FLAGS, RealKafka
from tests.kafka.versions import YARDSTICK
from tests.peers.metrics.listed import LIST, SOURCE

TIMEOUT_S = 300.0


def list_metrics(bootstrap_servers: str) -> list[dict[str, Any]]:
    """Return group, name, level and tags of each metric, sorted by group and name."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [
                *("java", *JVM_FLAGS, f"-Djava.io.tmpdir={directory}"),
                *("-cp", JARS.class_path(), str(SOURCE), bootstrap_servers),
            ],
            stdout=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    found = []
    for line in done.stdout.splitlines():
        level, group, name, *tags = line.split(" ")
        listed_tags = sorted(tag for each in tags for tag in each.split(",") if tag)
        found.append({"group": group, "name": name, "level": level, "tags": listed_tags})
    return sorted(found, key=lambda each: (each["group"], each["name"], each["tags"]))


def main() -> None:
    """Write the list of the version that tests compare with."""
    with closing(RealKafka()) as kafka:
        kafka.start()
        metrics = list_metrics(kafka.bootstrap_servers)
    lines = ",\n".join(f"    {json.dumps(each)}" for each in metrics)
    LIST.write_text(f'{{\n  "version": "{YARDSTICK}",\n  "metrics": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
