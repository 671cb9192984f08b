"""Test what a worker logs, from which level on, in which format, and what it folds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import orjson
import pytest

from streams import App, serdes
from streams.errors import ConfigError, OutcomeUnknown, StreamsError, TaskMigrated
from streams.processes.error_exit import report_error
from streams.processes.logging_setup import (
    OUR_LOGGERS,
    RepeatFilter,
    configure_logging,
)
from streams.runtime.clients.errors import LibrdkafkaLogger, librdkafka_log
from streams.settings.choices import LogFormat, LogLevel

CONNECT = "127.0.0.1:9092/1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused"
SET_UP = "kafka-1:9092/1: Connection setup timed out in state CONNECT"
DENIED = "kafka-1:9092/1: SASL authentication error: Authentication failed"


BeginProcess = Callable[[], logging.Logger]


@pytest.fixture
def begin_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[BeginProcess]:
    """Yield a function that returns the root logger as it is when a process begins."""
    loggers = (
        logging.getLogger(),
        librdkafka_log,
        *map(logging.getLogger, OUR_LOGGERS),
    )
    levels = [each.level for each in loggers]

    def begin() -> logging.Logger:
        monkeypatch.setattr(loggers[0], "handlers", [])
        return loggers[0]

    yield begin
    for each, level in zip(loggers, levels, strict=True):
        each.setLevel(level)
    librdkafka_log.filters.clear()


def log_some_lines() -> None:
    logging.getLogger("streams.runtime.threads.repartition_purge").debug("looked at")
    logging.getLogger("streams.processes.lifecycle").info("running")
    logging.getLogger("state.rocksdb.stalls").warning("stalled")
    logging.getLogger("others.library").debug("noise")
    logger = LibrdkafkaLogger()
    for line in (CONNECT, SET_UP):
        logger.log(logging.ERROR, "%s", line)
    logger.log(logging.WARNING, "%s", "slow")
    logger.log(logging.CRITICAL, "%s", DENIED)


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("debug", ["looked at", "running", "stalled", CONNECT, SET_UP, "slow", DENIED]),
        ("info", ["running", "stalled", DENIED]),
        ("warning", ["stalled", DENIED]),
        ("error", []),
    ],
)
def test_lines_are_shown_from_a_level_on_and_attempts_to_connect_for_debugging_only(
    level: LogLevel,
    told: list[str],
    begin_process: BeginProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin_process()
    configure_logging(level, "text")
    log_some_lines()
    assert [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()] == told


def test_a_line_of_json_has_its_time_level_logger_message_fields_and_error(
    begin_process: BeginProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin_process()
    configure_logging("info", "json")
    log = logging.getLogger("streams.processes.announcement")
    log.info("runs %r", "words", extra={"application_id": "words"})
    try:
        raise ValueError("no number")
    except ValueError:
        log.exception("failed\nin two lines")
    first, second = map(orjson.loads, capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("Z")
    assert first.pop("process") > 0
    assert first == {
        "level": "info",
        "logger": "streams.processes.announcement",
        "thread": "MainThread",
        "message": "runs 'words'",
        "application_id": "words",
    }
    assert second["level"] == "error"
    assert second["message"] == "failed\nin two lines"
    assert second["error"].endswith("ValueError: no number")


@pytest.mark.parametrize(
    ("log_format", "told"),
    [
        ("text", "millrace: no such topic\n"),
        ("json", '"level":"error","logger":"streams.processes.error_exit"'),
    ],
)
def test_the_error_that_ends_a_command_is_in_the_format_of_the_log(
    log_format: LogFormat,
    told: str,
    begin_process: BeginProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin_process()
    configure_logging("info", log_format)
    assert report_error(ConfigError("no such topic")) == 2
    [line] = capsys.readouterr().err.splitlines(keepends=True)
    assert told in line
    assert "no such topic" in line


@pytest.mark.parametrize(
    ("error", "shown", "code"),
    [
        (
            TaskMigrated("poll: fenced (_FENCED)"),
            "is told: poll: fenced (_FENCED) (see MR-010)",
            "MR-010",
        ),
        (OutcomeUnknown("flush: timed out"), "is told: flush: timed out (see MR-013)", "MR-013"),
        (StreamsError("no such store"), "is told: no such store", "MR-003"),
        (ValueError("of a user"), "is told: of a user", None),
    ],
)
def test_a_warning_that_names_a_fault_ends_with_the_address_of_its_page(
    error: Exception,
    shown: str,
    code: str | None,
    begin_process: BeginProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin_process()
    log = logging.getLogger("streams.planted")
    configure_logging("info", "text")
    log.warning("is told: %s", error)
    log.info("is told: %s", error)
    configure_logging("info", "json")
    log.warning("is told: %s", error)
    log.warning("is told by another: %s", "a text", extra={"error_class": type(error)})
    warned, informed, *as_json = capsys.readouterr().err.splitlines()
    assert warned.endswith(f"streams.planted: {shown}")
    assert informed.endswith(f"streams.planted: is told: {error}")
    line, by_class = map(orjson.loads, as_json)
    assert line["message"] == f"is told: {error}"
    assert line.get("code") == code
    assert (by_class.get("code") is None) == (code is None)
    assert "error_class" not in by_class


def test_the_last_line_of_a_process_ends_with_the_address_too(
    begin_process: BeginProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_process()
    configure_logging("info", "text")
    report_error(StreamsError("thread 0: fenced (_FENCED)"))
    configure_logging("info", "json")
    report_error(StreamsError("thread 0: fenced (_FENCED)"))
    text, as_json = capsys.readouterr().err.splitlines()
    assert text == "millrace: thread 0: fenced (_FENCED) (see MR-010)"
    assert orjson.loads(as_json)["code"] == "MR-010"


def test_the_settings_of_the_application_come_after_those_of_the_import(
    capsys: pytest.CaptureFixture[str], begin_process: BeginProcess
) -> None:
    root = begin_process()
    configure_logging("debug", "text")
    configure_logging("warning", "json")
    log_some_lines()
    lines = list(map(orjson.loads, capsys.readouterr().err.splitlines()))
    assert [line["message"] for line in lines] == ["stalled", DENIED]
    assert len(root.handlers) == 1


def test_what_a_process_has_configured_itself_stays(
    capsys: pytest.CaptureFixture[str], begin_process: BeginProcess
) -> None:
    root = begin_process()
    logging.basicConfig(level=logging.WARNING, format="mine %(message)s")
    configure_logging("debug", "json")
    log_some_lines()
    assert [line[:5] for line in capsys.readouterr().err.splitlines()] == ["mine "] * 4
    assert root.level == logging.WARNING


def test_lines_of_librdkafka_that_are_alike_are_shown_once_a_minute_with_their_number() -> None:
    now_s = 0.0
    repeats = RepeatFilter(lambda: now_s)

    def show(text: str) -> str | None:
        line = logging.LogRecord("l", logging.ERROR, "", 0, "%s %s", ("FAIL", text), None)
        return line.getMessage() if repeats.filter(line) else None

    assert show("[thrd:a]: kafka-1:9092/1: Receive failed: reset (after 12ms)") is not None
    assert show("[thrd:b]: kafka-2:9092/2: Receive failed: reset (after 7ms)") is None
    assert show("[thrd:b]: kafka-2:9092/2: SSL handshake failed") is not None
    now_s = 61.0
    last = show("[thrd:a]: kafka-1:9092/1: Receive failed: reset (after 9ms)")
    assert last is not None
    assert last.endswith("reset (after 9ms) (1 more like it since the last one)")


def test_run_takes_level_and_format_from_the_settings(
    begin_process: BeginProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    begin_process()
    app = App("a", bootstrap_servers="127.0.0.1:1", log_format="json", log_level="error")
    app.stream("in", key=serdes.string, value=serdes.string).to("out")
    with pytest.raises(SystemExit):
        app.run(workers=0)
    [line] = map(orjson.loads, capsys.readouterr().err.splitlines())
    assert line["message"] == "workers must be a number, at least 1, not 0"
    assert logging.getLogger("streams").level == logging.ERROR
