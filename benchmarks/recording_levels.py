"""Bind an application as a worker does at a recording level of metrics, or without any metrics.

`off` is no setting: it shows what the levels cost. What a sink counts is part of its code, so there
sinks are compiled again without these lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, Literal, get_args

from state.store import StateStore
from streams.common.host import Clocks, SystemHost
from streams.graph.nodes import StoreKind
from streams.graph.step_measurements import StepMeasurements
from streams.operators import sink
from streams.runtime.clients.client_statistics import ClientStatisticsRecorder
from streams.runtime.tasks import task_creator
from streams.runtime.tasks.context import TaskContext
from streams.runtime.tasks.metered_stores import StoreMeter
from streams.runtime.threads.measurements import ThreadMeasurements
from streams.topology import compile as compiling

Level = Literal["off", "info", "debug"]
LEVELS: tuple[Level, ...] = get_args(Level)
AIMS: dict[Level, float] = {"info": 1.02, "debug": 1.10}
"""The most that a level may cost of count and map, as a ratio to `off`."""
_APPLICATION_S = 2e-6
"""The seconds that a whole application takes for a record of a map or a count, more or less."""
_COMMIT_INTERVAL_S = 0.1
"""The default of `commit_interval_ms` with exactly once."""
_COUNTING = re.compile(
    r"^ +written\.records \+= 1\n +if written\.is_due:\n"
    r" +measured\.measure_written\(.*\n",
    re.MULTILINE,
)
_WRITERS = 3
"""The functions of the module that count records: to one topic, to a chosen one, to several."""


class PacedHost(SystemHost):
    """Provides a clock that goes on by what a whole application takes for the records.

    Steps alone take less, and levels that take turns more: neither would look at records, every few
    milliseconds, and at commits as often for a record as an application does.
    """

    def __init__(self) -> None:
        self._elapsed_s = 0.0

    def monotonic_s(self) -> float:
        return self._elapsed_s

    def now_ms(self) -> int:
        return int(self._elapsed_s * 1_000)

    def add_records(self, count: int) -> None:
        """Let the time pass that a whole application takes for so many records."""
        self._elapsed_s += count * _APPLICATION_S


class SliceMeter:
    """Measures the slices and commits of one task as a stream thread does at a level."""

    def __init__(self, level: Level, context: TaskContext, meters: Sequence[StoreMeter]) -> None:
        self._host = PacedHost()
        # Half an interval from the beginning: a whole one ends with a batch that begins a turn, and
        # those are left out of estimates.
        self._commit_at_s = _COMMIT_INTERVAL_S / 2
        self._measured = ThreadMeasurements(
            latencies_at_commit=True, host=self._host, measures_lateness=level == "debug"
        )
        self._is_on = level != "off"
        self._context, self._meters = context, meters if level == "debug" else ()

    def add_slice(self, messages: Sequence[Any]) -> None:
        """Measure a slice that has been processed."""
        if not self._is_on:
            return
        self._host.add_records(len(messages))
        if self._measured.add_slice_and_sample(
            self._context.task_name, [(None, messages)], 0.001, 1
        ):
            self._set_due()
        for meter in self._meters:
            meter.observe_buffer()

    def add_commit(self) -> None:
        """Measure a commit if an application would have made one: its interval is over."""
        if not self._is_on or self._host.monotonic_s() < self._commit_at_s:
            return
        self._commit_at_s += _COMMIT_INTERVAL_S
        self._measured.observe_times_until_commit(1)
        self._measured.observe_slices()
        self._set_due()
        for meter in self._meters:
            meter.add_calls_to_timings()

    def _set_due(self) -> None:
        for measured in self._context.step_measurements.values():
            measured.request_next_measurement()


@contextmanager
def bind_at(level: Level) -> Iterator[None]:
    """Bind steps without what they measure, in this block, if the level is `off`."""
    names = ("create_topic_writer", "_wrap_with_latency_measurement")
    kept = {name: getattr(compiling, name) for name in names}
    if level == "off":
        replaced: Mapping[str, Callable[..., Any]] = {
            "create_topic_writer": _compile_sinks_without_counts().create_topic_writer,
            "_wrap_with_latency_measurement": lambda node, process, context: process,
        }
        for name, function in replaced.items():
            setattr(compiling, name, function)
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(compiling, name, function)


@contextmanager
def run_at(level: Level) -> Iterator[None]:
    """Let threads that start in this block measure nothing, if the level is `off`.

    The counters that the runtime itself needs, such as that of records, are there in any case.
    """
    with ExitStack() as exits:
        for owner, name, replacement in _UNMEASURED if level == "off" else ():
            exits.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, replacement)
        yield


def _create_meter_alone(
    store: StateStore, kind: StoreKind, clocks: Clocks, *, details: bool
) -> StoreMeter:
    """Return the meter of a store whose methods are as they were."""
    return StoreMeter(store, clocks)


def _do_nothing(*arguments: object, **options: object) -> None:
    """Measure nothing."""


_UNMEASURED: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (ThreadMeasurements, "add_slice_and_sample", _do_nothing),
    (ThreadMeasurements, "observe_times_until_commit", _do_nothing),
    (ThreadMeasurements, "observe_slices", _do_nothing),
    (StepMeasurements, "request_next_measurement", _do_nothing),
    (ClientStatisticsRecorder, "create_client_settings", lambda self, client_id: {}),
    (task_creator, "meter_store", _create_meter_alone),
)
"""The attributes that are replaced in a worker without metrics: owner, name and replacement."""


def _compile_sinks_without_counts() -> ModuleType:
    """Return the module of sinks without the lines in which a record is counted."""
    source, removed = _COUNTING.subn("", inspect.getsource(sink))
    if removed != _WRITERS:
        raise RuntimeError(
            f"{sink.__name__} counts records in {removed} places that are known, not in {_WRITERS}"
        )
    module = ModuleType(f"{sink.__name__}_without_counts")
    exec(compile(source, sink.__file__, "exec"), module.__dict__)
    return module
