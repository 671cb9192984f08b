"""Run a topology as `benchmarks.peers.worker` does, and write how long the steps of a result take.

    python -m benchmarks.peers.timed_worker FILE WAY RECORDS TOPOLOGY ...

The methods of the clients and the committer are replaced by ones that also take the time. At the
end FILE has, as JSON, the median and the 99th percentile of each step, in milliseconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.figures import percentile
from benchmarks.peers.worker import main as run_worker
from streams.runtime.clients.consumer import DataConsumer
from streams.runtime.clients.producer import StreamsProducer
from streams.runtime.threads.commit import TaskCommitter

POLLED, WAITED = "due until polled", "polled until the commit begins"
COMMITTED = "the commit"
STEPS = {
    "flush": "of it: until all is delivered (flush)",
    "send_offsets_to_transaction": "of it: offsets (AddOffsetsToTxn, TxnOffsetCommit)",
    "commit_transaction": "of it: end (EndTxn)",
}


class StepTimes:
    """Collects the durations of steps in ms, and which polled records wait for a commit."""

    def __init__(self) -> None:
        self.durations_ms: dict[str, list[float]] = defaultdict(list)
        self._polled_at_s: list[float] = []

    def add_poll(self, due_ms: list[int]) -> None:
        """Note that records were polled now, and how long before they were due."""
        now_ms = time.time() * 1_000
        self.durations_ms[POLLED] += [now_ms - each for each in due_ms]
        self._polled_at_s += [time.monotonic()] * len(due_ms)

    def begin_commit(self) -> None:
        """Note that what was polled before has waited until now."""
        now_s = time.monotonic()
        self.durations_ms[WAITED] += [(now_s - each) * 1_000 for each in self._polled_at_s]
        self._polled_at_s.clear()

    def summarize(self) -> dict[str, list[float]]:
        """Return the median and the 99th percentile of each step, in ms."""
        ordered = {step: sorted(each) for step, each in self.durations_ms.items()}
        return {
            step: [percentile(each, 0.5), percentile(each, 0.99)] for step, each in ordered.items()
        }


def take_times(times: StepTimes) -> None:
    """Let the clients and the committer of this process tell how long their steps take."""

    def time_method(owner: type, name: str, step: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def call_timed(*arguments: Any) -> Any:
            began_s = time.monotonic()
            result = method(*arguments)
            times.durations_ms[step].append((time.monotonic() - began_s) * 1_000)
            return result

        setattr(owner, name, call_timed)

    for name, step in STEPS.items():
        time_method(StreamsProducer, name, step)
    commit_tasks = TaskCommitter.commit_tasks

    def time_poll(name: str) -> None:
        poll: Callable[..., list[Any]] = getattr(DataConsumer, name)

        def poll_and_note(consumer: DataConsumer, records_max: int, timeout_s: float) -> list[Any]:
            messages = poll(consumer, records_max, timeout_s)
            if messages:
                times.add_poll([message.timestamp()[1] for message in messages])
            return messages

        setattr(DataConsumer, name, poll_and_note)

    def commit_and_note(committer: TaskCommitter, tasks: Any) -> int:
        times.begin_commit()
        began_s = time.monotonic()
        committed = commit_tasks(committer, tasks)
        if committed:
            times.durations_ms[COMMITTED].append((time.monotonic() - began_s) * 1_000)
        return committed

    time_poll("poll_records")
    time_poll("poll_at_first_record")
    setattr(TaskCommitter, "commit_tasks", commit_and_note)  # noqa: B010  mypy takes no assignment


def main() -> None:
    """Run the worker, and write the times of its steps when it has ended."""
    path = Path(sys.argv.pop(1))
    times = StepTimes()
    take_times(times)
    run_worker()
    path.write_text(json.dumps(times.summarize()))


if __name__ == "__main__":
    main()
