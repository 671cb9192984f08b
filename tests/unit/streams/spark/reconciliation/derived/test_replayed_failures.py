"""Test what a replay does with records that failed when the application processed them."""

from __future__ import annotations

import logging

import pytest

from streams import App, dead_letter, serdes
from streams.spark.reconciliation.derivation.replay import ReplayedTask, ReplayWork
from streams.spark.reconciliation.derivation.row_schemas import ReplayedMessage


def test_a_dead_letter_of_the_application_is_not_logged_as_a_new_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("replayed", deserialization_handler=dead_letter("dead"))
    app.stream("in", key=serdes.string, value=serdes.int64).to("out")
    [sub] = app.topology().subtopologies
    task = ReplayedTask(ReplayWork(sub, app.config.handlers), partition=0)

    with caplog.at_level(logging.DEBUG):
        task.process_message(ReplayedMessage(b"k", b"no number", "in", 0, 7, 0))
        task.commit_and_close_task()

    assert [(row[0], row[4]) for row in task.output_rows] == [("dead", b"no number")]
    assert caplog.messages == []
