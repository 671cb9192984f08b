"""Provide what every test may ask for: a broker of the chosen kind, and names of its own.

`pytest --broker=embedded|kafka|both|HOST:PORT` chooses; a test that takes `broker` runs once for
each. A broker is started when the first test asks for it, and once a session.
"""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests import brokers, sampling
from tests.brokers import Broker
from tests.memory_files import compose_prefix, create_run_directory, has_free_gigabyte

MEMORY_DISK = Path("/dev/shm")
_NUMBERS = itertools.count(1)
_RUNNING: list[Broker] = []
_RUN_DIRECTORY = pytest.StashKey[Path | None]()
"""Where the files of this run are in memory; None if they are to stay."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        default=None,
        metavar="embedded|kafka|both|HOST:PORT",
        help="the broker to test against; default: both, real Kafka where Java and Maven are",
    )
    parser.addoption(
        "--histories",
        type=int,
        default=3,
        metavar="N",
        help="how many random histories of transactions and of groups are compared",
    )
    parser.addoption(
        "--keep-histories",
        action="store_true",
        help="write down what real Kafka answers to random histories",
    )
    parser.addoption(
        "--keep-seeds",
        action="store_true",
        help="write down which seeds of the simulation show the planted bugs",
    )
    parser.addoption(
        "--seed",
        default=None,
        type=int,
        metavar="N",
        help="the seed of what happens to the groups of clients; default: another each time",
    )
    parser.addoption(
        "--files-in-memory",
        action="store_true",
        help="temporary directories of tests and of their brokers lie in memory, if there is room",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "sampled(count, by=None): so many of the test's cases (or of the values of the parameter"
        " `by`, alike for a module) are run where a sample is taken",
    )
    config.addinivalue_line("markers", "feature(words): a row of the table in docs/versions.md")
    directory = create_run_directory(MEMORY_DISK) if config.getoption("--files-in-memory") else None
    if directory is not None:
        tempfile.tempdir = str(directory)  # pytest asks for it, too
        config.stash[_RUN_DIRECTORY] = directory
    option = config.getoption("--broker")
    try:
        chosen = brokers.choices(option or "both")
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    for choice in chosen:
        reason = brokers.reason_to_skip(choice)
        if reason and option == "kafka":
            raise pytest.UsageError(reason)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus:  # its files stay until the next run begins
        session.config.stash[_RUN_DIRECTORY] = None


def pytest_unconfigure(config: pytest.Config) -> None:
    directory = config.stash.get(_RUN_DIRECTORY, None)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from the tests that are collected: millions of objects that stay.

    It would look at all of them again and again, while they are made and while they run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = sampling.drop_unsampled(items)
    if dropped:
        config.hook.pytest_deselected(items=dropped)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    sample = sampling.chosen_sample()
    if sample is not None:
        terminalreporter.write_line(f"sample: {sampling.VARIABLE}={sample} takes the same")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker" in metafunc.fixturenames:
        chosen = brokers.choices(metafunc.config.getoption("--broker") or "both")
        metafunc.parametrize("broker", chosen, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "broker" in getattr(item, "fixturenames", ()):
        report.sections += [
            (f"log of the {each.kind} broker", each.log_tail()) for each in _RUNNING
        ]
    return report


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Provide a running broker; the test that kills it starts it again."""
    brokers.skip_if_missing(request.param)
    made = brokers.make(request.param)
    try:
        made.start()
        _RUNNING.append(made)
        yield made
    finally:
        if made in _RUNNING:
            _RUNNING.remove(made)
        made.close()


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Return a function that makes names that no other test uses, in any run on this machine."""
    return lambda stem: f"{stem}-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    """Return the id of a group that does not exist yet."""
    return unique("group")


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """Provide a directory on a disk in memory, if there is one: other tests keep the disk busy.

    For what is measured and must not depend on the disk: memory that waits for a flush, or pauses
    (rocksdict lets no thread run while it opens a store, which waits for the disk several times).
    """
    if not has_free_gigabyte(MEMORY_DISK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix=compose_prefix(), dir=MEMORY_DISK) as directory:
        yield Path(directory)
