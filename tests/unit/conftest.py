"""Judge properties by their assertions, not by how long an example takes on a busy machine.

What a process remembers of a full disk is forgotten after each test. A test leaves the handlers of
stop signals as they were: with another one a run of the tests would not end at SIGTERM.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from state.rocksdb.failures import DISK_FULL
from tests.brokers import in_ci
from tests.sampling import chosen_sample

settings.register_profile("desk", deadline=None, max_examples=20)
settings.register_profile("ci", deadline=None, max_examples=100)
# A commit is always tried with the same examples; `make ci-full` looks for failing new ones.
settings.register_profile("sample", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("desk" if not in_ci() else "ci" if chosen_sample() is None else "sample")


@pytest.fixture(autouse=True)
def _forget_full_disk() -> Iterator[None]:
    yield
    DISK_FULL.clear()


@pytest.fixture(autouse=True)
def _stop_signals_are_handled_as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    left = {each: signal.getsignal(each) for each in before}
    for each, handler in before.items():
        signal.signal(each, handler)
    assert left == before, "the test leaves a handler: app.start(handle_signals=False) sets none"
