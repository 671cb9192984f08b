"""Run a worker of the crash tests: `python -m tests.integration.worker ARGUMENTS`.

It counts or copies, and can be told to end itself with SIGKILL when a named step of a commit is
reached: the one place where a test needs a crash at an exact point. Its counters go to a file when
it ends in order.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams import App, serdes, topics
from streams.processes.signals import StopRequest
from streams.runtime.threads.commit import CommitStep
from streams.testing.commit_steps import start_observed_app

COMMIT_INTERVAL_MS = 50


def build(application_id: str, source: str, target: str, *, kind: str, **settings: Any) -> App:
    """Build the application of that kind.

    `count` counts by key with a store; `upgraded` is a later version of it, with a step and a store
    more, which counts the records of odd numbers, into `<target>-odd`; `copy` is stateless; `words`
    goes by a repartition; `join` joins each value with itself, if it is odd, through two
    repartitions and three stores; `poison` counts, in an aggregate that it changes in place, what
    `is_poison` does not stop; `refused` does the same, and stops it in the serde of the aggregate's
    store; `pattern` counts the records of all topics whose names begin with `source` and a dash, by
    key, and by value behind a repartition, into `<target>-values`.
    """
    app = App(application_id, **settings)
    if kind == "pattern":
        count_topics_of_pattern(app, source, target)
        return app
    stream = app.stream(source, key=serdes.string, value=serdes.string)
    if kind in ("count", "upgraded"):
        stream.group_by_key().count(store="counts").to_stream().to(target)
        if kind == "upgraded":
            odd = stream.filter(lambda _, value: bool(int(value.split()[1]) % 2))
            odd.group_by_key().count(store="odd").to_stream().to(f"{target}-odd")
    elif kind == "words":
        words = stream.flat_map_values(str.split).group_by(lambda _, word: word, key=serdes.string)
        words.count(store="counts").to_stream().to(target)
    elif kind == "join":
        left, right = (
            stream.select_key(lambda _, value: value, key=serdes.string, name=side)
            for side in ("left", "right")
        )
        odd = right.filter(lambda value, _: int(value.split()[1]) % 2)
        joined = left.left_join(
            odd, lambda one, other: f"{one}+{other}", within=86_400_000, name="twins"
        )
        joined.to(target, value=serdes.string)
    elif kind in ("poison", "refused"):
        fold, value = (tally, serdes.json) if kind == "poison" else (remember, REFUSING)
        seen = stream.group_by_key().aggregate(dict, fold, value=value, store="seen")
        counts = seen.to_stream().map_values(lambda tallied: tallied["n"], value=serdes.int64)
        counts.to(target)
    else:
        stream.map_values(str.upper).to(target)
    return app


def count_topics_of_pattern(app: App, source: str, target: str) -> None:
    """Count what all topics of a pattern have by key, and by value behind a repartition."""
    pattern = topics.matching(f"{re.escape(source)}-.*")
    stream = app.stream(pattern, key=serdes.string, value=serdes.string)
    stream.group_by_key().count(store="counts").to_stream().to(target)
    by_value = stream.group_by(lambda _, value: value, key=serdes.string)
    by_value.count(store="values").to_stream().to(f"{target}-values")


def is_poison(value: str) -> bool:
    """Tell whether a value that `Topics.load` makes ("value 17") is not to be counted."""
    return int(value.split()[1]) % 7 == 3


def tally(key: str, value: str, tallied: dict[str, int]) -> dict[str, int]:
    """Count in place, and find only then that the value should not have been counted."""
    tallied["n"] = tallied.get("n", 0) + 1
    if is_poison(value):
        raise ValueError(f"{value} is poison")
    return tallied


def remember(key: str, value: str, tallied: dict[str, Any]) -> dict[str, Any]:
    """Count in place, poison too."""
    tallied["n"] = tallied.get("n", 0) + 1
    tallied["last"] = value
    return tallied


def refuse_poison(tallied: dict[str, Any]) -> bytes:
    if is_poison(tallied["last"]):
        raise ValueError(f"{tallied['last']} is poison")
    return serdes.json.serialize(tallied)


REFUSING = serdes.of(refuse_poison, serdes.json.deserialize, name="no poison")


def killer(step: str | None, commit: int) -> Callable[[CommitStep], None]:
    """Return a listener that ends this process at the `commit`-th time that `step` is reached."""
    left = commit

    def reached(now: CommitStep) -> None:
        nonlocal left
        if now.name == step:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reached


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("servers", "application", "source", "target", "kind", "guarantee"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--session", type=int, required=True)
    parser.add_argument("--processing-handler", default="fail")
    parser.add_argument("--metadata-max-age-ms", type=int, default=300_000)
    parser.add_argument("--kill-at")
    parser.add_argument("--kill-commit", type=int, default=1)
    parser.add_argument("--counters", type=Path, required=True)
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    app = build(
        given.application,
        given.source,
        given.target,
        kind=given.kind,
        bootstrap_servers=given.servers,
        state_dir=given.state,
        processing_guarantee=given.guarantee,
        commit_interval_ms=COMMIT_INTERVAL_MS,
        session_timeout_ms=given.session,
        heartbeat_interval_ms=200,
        max_poll_records=500,
        processing_handler=given.processing_handler,
        metadata_max_age_ms=given.metadata_max_age_ms,
    )
    stop = StopRequest()
    signal.signal(signal.SIGTERM, lambda *_: stop.make_request())
    with start_observed_app(app, killer(given.kill_at, given.kill_commit)) as running:
        while not stop.wait_until_made(0.05) and running.state != "ERROR":
            pass
    given.counters.write_text(json.dumps(running.metrics()))


if __name__ == "__main__":
    main()
