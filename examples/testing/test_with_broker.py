"""Test the word count on a broker of its own: `pytest examples/testing/test_with_broker.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.testing.words import produce, read_counts
from examples.word_count import app
from millrace.broker import EmbeddedBroker


@pytest.mark.millrace_broker(topics={"lines": 2, "counts-by-word": 2})
def test_words_are_counted(millrace_broker: EmbeddedBroker, tmp_path: Path) -> None:
    servers = millrace_broker.bootstrap_servers
    app.configure(None, bootstrap_servers=servers, state_dir=tmp_path)
    produce(servers, ["to be or not", "to be"])
    with app.start() as running:
        running.wait_for("RUNNING")
        assert read_counts(servers, words=6) == {"to": 2, "be": 2, "or": 1, "not": 1}
