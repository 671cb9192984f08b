"""Test Kafka Streams and Millrace on one broker, with several partitions, threads and caching."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import IN_CI, Broker
from tests.differential.live import generate, run
from tests.differential.peer import Peer

CASES = 20
ON_KAFKA = 6
"""Of these on a real broker too: it is slower, and a broker is not what they are about."""


@IN_CI
@pytest.mark.parametrize("seed", range(CASES))
def test_a_case_at_work_agrees(
    seed: int, peer: Peer, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    if broker.kind == "kafka" and seed >= ON_KAFKA:
        pytest.skip(f"{ON_KAFKA} cases on real Kafka are enough")
    live = generate(seed)
    found, results = run(live, peer, broker.bootstrap_servers, tmp_path, unique(f"live{seed}"))
    assert results > 0, "nothing came out"
    if found:
        lines = "\n".join(found)
        pytest.fail(f"{live.mode.value}\n{lines}\n{live.case.text()}", pytrace=False)
