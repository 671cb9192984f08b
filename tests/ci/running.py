"""Run some parts at a time, keep together what each prints, and show their progress."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.ci.parts import Part
from tests.ci.times import Outcome

PART_TIMEOUT_S = 2_400.0
POLL_S = 0.2
PROGRESS_EVERY_S = 15.0
TAIL_BYTES = 4_096
_PERCENT = re.compile(rb"\[ *(\d+)%\]")


@dataclass(slots=True)
class Running:
    """Holds a part that has been started and the file that takes what it prints."""

    part: Part
    process: subprocess.Popen[bytes]
    log: Path
    began_s: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began_s

    def describe_progress(self) -> str:
        """Return the part's name with the percentage that pytest printed last, or its seconds."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            found = _PERCENT.findall(log.read())
        how_far = f"{int(found[-1])} %" if found else f"{self.seconds:.0f} s"
        return f"{self.part.name} {how_far}"

    def end(self) -> Outcome | None:
        """Return how the part went once it has ended; end it if it hangs."""
        status = self.process.poll()
        if status is None:
            if self.seconds < PART_TIMEOUT_S:
                return None
            verdict = f"failed, not done after {PART_TIMEOUT_S:.0f} s"
        else:
            verdict = "passed" if status in self.part.good else f"failed, status {status}"
        self.kill()
        return Outcome(self.part.name, self.seconds, verdict)

    def kill(self) -> None:
        """End the part with all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def run_parts(
    parts: Sequence[Part], environment: Mapping[str, str], at_once: int = 2
) -> list[Outcome]:
    """Run all parts, `at_once` at a time except for those that run alone, which come last.

    `environment` is added to each part's own. Each part has its turn whatever came before it.
    """
    outcomes: list[Outcome] = []
    shared = [part for part in parts if not part.alone]
    alone = [part for part in parts if part.alone]
    with tempfile.TemporaryDirectory(prefix="millrace-ci-") as directory:
        for waiting, count in ((shared, at_once), (alone, 1)):
            outcomes += _run_some(waiting, count, environment, Path(directory))
    return outcomes


def _run_some(
    parts: Sequence[Part], at_once: int, environment: Mapping[str, str], directory: Path
) -> list[Outcome]:
    waiting, running, outcomes = list(parts), list[Running](), list[Outcome]()
    told_s = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(waiting.pop(0), environment, directory))
            time.sleep(POLL_S)
            for each in tuple(running):
                outcome = each.end()
                if outcome is not None:
                    running.remove(each)
                    outcomes.append(outcome)
                    _print_part(outcome, each.log)
            if running and time.monotonic() - told_s >= PROGRESS_EVERY_S:
                told_s = time.monotonic()
                progress = ", ".join(each.describe_progress() for each in running)
                print(f"... {progress}; {len(waiting)} parts to come", flush=True)
    finally:
        for each in running:
            each.kill()
    return outcomes


def _start(part: Part, environment: Mapping[str, str], directory: Path) -> Running:
    print(f"--- {part.name} begins: {' '.join(part.command)}", flush=True)
    log = directory / f"{part.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment},
        )
    return Running(part, process, log)


def _print_part(outcome: Outcome, log: Path) -> None:
    print(f"\n=== {outcome.part}: {outcome.verdict} after {outcome.seconds:.0f} s", flush=True)
    print(log.read_text(errors="replace"), flush=True)
