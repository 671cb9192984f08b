"""Make the data directories of earlier commits that `test_earlier_commit` loads.

`python -m tests.upgrade.earlier COMMIT` takes that commit's tree out of git, runs its broker, fills
it, and keeps the directory with all that the broker said of it in `kept/COMMIT.zip`. What is in
there is the promise to load it for ever: add one when what is on disk has changed, replace none.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import tarfile
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.brokers import EmbeddedProcess
from tests.conformance.wire import Api
from tests.upgrade.answers import Answers
from tests.upgrade.populating import (
    MODERN,
    PLAIN,
    SETTINGS,
    connect,
    make_topics,
    open_transactions,
    populate,
    prepare,
    said,
)

KEPT = Path(__file__).with_name("kept")
ANSWERS = "answers.json"
DATA = "data"
TIMEOUT_MS = 5_000  # of the open transactions: they have timed out when the directory is loaded


def as_json(answers: Answers) -> Any:
    """Return the value plain enough to be compared with what was read from a file."""
    return json.loads(json.dumps(asdict(answers), default=repr))


def make(commit: str) -> Path:
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as source:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
            tree.extractall(source, filter="data")
        broker = EmbeddedProcess(SETTINGS, Path(source))
        try:
            broker.start()
            make_topics(broker)
            with connect(broker) as client:
                has_consumer_groups = Api.CONSUMER_GROUP_HEARTBEAT in client.advertised()
            populate(broker, kinds=("consumer",) if has_consumer_groups else ())
            with connect(broker) as client:
                open_transactions(client, TIMEOUT_MS)
            groups = (*PLAIN, *MODERN) if has_consumer_groups else PLAIN
            answers = as_json(said(broker, groups))
            broker.stop()
            prepare(broker.data_dir)
            return _zip(broker.data_dir, answers, KEPT / f"{commit}.zip")
        finally:
            broker.close()


def _zip(data: Path, answers: Any, path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        kept.writestr(ANSWERS, json.dumps(answers, indent=1, ensure_ascii=False))
        for each in sorted(data.rglob("*")):
            if each.is_file() and each.name != ".lock":
                kept.write(each, Path(DATA) / each.relative_to(data))
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Keep a data directory of an earlier commit.")
    parser.add_argument("commit")
    print(make(parser.parse_args().commit))
