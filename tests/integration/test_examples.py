"""Test the examples as their page says: fed, run and shown by commands, on the embedded broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import IN_CI
from tests.integration.cluster import Command
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = IN_CI

ROOT = Path(__file__).parents[2]
# What some line that each shows has in it.
SHOWN = {
    "word_count": "def: ",
    "page_views": "Europe: {'from_ms': 1767225600000, 'to_ms': 1767225900000, 'views': ",
    "anomalies": "account-7: {'attempts': 30, ",
    "orders": "'customer': 'Customer ",
    "fraud": "two-countries: {'amount': 40, 'country': 'NZ', 'rules': ['two countries']}",
    "top_ten": "jazz: [['Song 1', ",
    "dedupe": "event-999: b'event 999'",
    "temperature": "sensor-3: {'minute_ms': 17672",
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Provide one state directory, with one embedded broker, for all examples."""
    directory = tmp_path_factory.mktemp("examples") / "state"
    yield directory
    known = directory / "broker" / "process"
    if known.exists():
        os.kill(int(known.read_text().split()[1]), signal.SIGKILL)


def said(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_fed_run_and_shown(name: str, state: Path) -> None:
    count = "6000" if name == "temperature" else "1000" if name != "anomalies" else "3000"
    fed = said("examples.feed", name, "--count", count, "--state-dir", str(state))
    assert " records in " in fed
    command = Command(
        ["-m", "streams", "run", f"examples.{name}:app", "--state-dir", str(state)], ROOT
    )
    try:
        shown = ""

        def there() -> bool:
            nonlocal shown
            shown = said("examples.show", name, "--last", "5000", "--state-dir", str(state))
            return SHOWN[name] in shown

        wait_until(there, what=lambda: f"{SHOWN[name]!r} in {shown[-2000:]}")
        command.stop()
        assert command.status == 0, command.log_tail()
    finally:
        command.close()
