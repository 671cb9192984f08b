"""Judge the health of a worker, for a person, a probe or an alert.

    healthy   records are processed, or could be: a broker answers, and each partition has a leader;
              state CREATED, REBALANCING or RUNNING; no thread
              stuck, failing or without an answer from its group for `stuck_after_ms`, none
              whose heartbeat a broker lets wait, and none that has failed and waits to be replaced;
              the state directory is there, and the embedded broker's disk is not full
    live      a restart of the process would not help: state as above; no thread stuck, except in
              a broker call

A worker whose broker is away, or the leader of a partition, is not healthy, and live: it goes on by
itself when the broker is back. `why` has a line for each thing that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from streams.runtime.restoring.progress import RestoreProgress
from streams.runtime.threads.stream_thread import StreamThread
from streams.runtime.threads.watchdog import ThreadActivity, ThreadLocation, describe_activity

ACTIVE_STATES = frozenset({"CREATED", "REBALANCING", "RUNNING"})


@dataclass(frozen=True, slots=True)
class RestoringStore:
    """Reports the progress of a store that is restored from its changelog.

    `records_left` is an upper bound; `seconds_left` is None while no records arrive.
    """

    task: str
    store: str
    records_left: int
    records_per_s: float
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class StandbyStore:
    """Reports how far a store of a standby or warm-up task has followed its changelog.

    `lag` is in offsets, as of some seconds ago; None where the changelog's end is not known.
    """

    task: str
    store: str
    lag: int | None


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """Reports a task that waits for a producer of its own (`processing_guarantee=exactly_once`).

    `failure` says with what the last attempt has failed; it is empty if none has.
    """

    task: str
    seconds: float
    failure: str


@dataclass(frozen=True, slots=True)
class ThreadHealth:
    """Reports the health of one stream thread.

    `doing` is where it is (see `streams.runtime.threads.watchdog`), `what` names the function and
    `seconds` how long that has been so; `stack` is there if it is stuck. `tasks` are states by
    name, `trouble` what went wrong since the last commit, `silent_s` for how long the group's
    coordinator has not answered. `waiting` has the tasks that wait for their transaction
    coordinators. `unanswered_s` is for how long a broker lets a heartbeat wait for its answer, 0
    until that is overdue: it hangs with its connections open, or the network drops packets.
    `group` says why a streams group has no tasks for any member; empty while it has some.
    """

    name: str
    state: str
    doing: str
    what: str
    seconds: float
    record: str
    stuck: bool
    stack: Sequence[str]
    tasks: dict[str, str]
    restoring: Sequence[RestoringStore]
    standby: Sequence[StandbyStore]
    last_commit_ms: int | None
    trouble: str
    trouble_s: float
    silent_s: float
    waiting: Sequence[WaitingTask] = ()
    unanswered_s: float = 0.0
    group: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """Reports the health of a worker as of now."""

    state: str
    healthy: bool
    live: bool
    why: Sequence[str]
    threads: Sequence[ThreadHealth]

    def as_json(self) -> bytes:
        """Return the report as indented JSON."""
        return orjson.dumps(self, option=orjson.OPT_INDENT_2)


def report_thread_health(
    thread: StreamThread, doing: ThreadActivity | None, now_s: float
) -> ThreadHealth:
    """Return the health report of one thread.

    `doing` is what the watchdog saw last; None if it has not seen the thread.
    """
    loop = thread.loop
    since_s, silent_since_s = loop.recovery.failing_since_s, loop.group_member.silent_since_s
    unanswered_since_s = loop.group_member.unanswered_since_s
    return ThreadHealth(
        name=thread.name,
        state=thread.state,
        doing=doing.location.value if doing else "",
        what=doing.function_name if doing else "",
        seconds=round(now_s - doing.since_s, 1) if doing else 0.0,
        record=doing.record_origin if doing else "",
        stuck=doing.is_stuck if doing else False,
        stack=doing.stack if doing else (),
        tasks={
            task.name: task.state.name for task in (*thread.current_tasks(), *loop.standby_tasks)
        },
        restoring=[_report_restore(store) for store in loop.restore_progress],
        standby=[StandbyStore(each.task, each.store, each.lag) for each in loop.standby_progress],
        last_commit_ms=loop.committed_at_ms,
        trouble=loop.recovery.last_failure,
        trouble_s=0.0 if since_s is None else round(now_s - since_s, 1),
        silent_s=0.0 if silent_since_s is None else round(now_s - silent_since_s, 1),
        waiting=[
            WaitingTask(each.task, round(now_s - each.since_s, 1), each.failure)
            for each in loop.producer_waits
        ],
        unanswered_s=0.0 if unanswered_since_s is None else round(now_s - unanswered_since_s, 1),
        group=loop.group_member.unready_reason,
    )


def _report_restore(store: RestoreProgress) -> RestoringStore:
    """Convert a store's restore progress to its part of the report."""
    left_s = store.remaining_s
    return RestoringStore(
        store.task,
        store.store,
        store.records_left,
        round(store.offsets_per_s, 1),
        None if left_s is None else round(left_s, 1),
    )


def judge_health(
    state: str,
    error: Exception | None,
    threads: Sequence[ThreadHealth],
    doing: dict[str, ThreadActivity],
    *,
    outage: str = "",
    disk_troubles: Sequence[str] = (),
    stuck_after_s: float,
    now_s: float,
) -> Health:
    """Return the worker's health report: whether it is healthy and live, and why not.

    `outage` says that no broker answers, or no leader of a partition; empty if all do.
    `disk_troubles` are of the state directory and the embedded broker's disk.
    """
    why = [] if state in ACTIVE_STATES else [f"state {state}" + (f": {error}" if error else "")]
    if outage:
        why.append(outage)
    why += disk_troubles
    for thread in threads:
        why += _list_unhealthy_reasons(thread, doing.get(thread.name), stuck_after_s, now_s)
    hangs = any(thread.stuck and thread.doing != ThreadLocation.BROKER for thread in threads)
    live = state in ACTIVE_STATES and not hangs
    return Health(state, not why, live, why, threads)


def _list_unhealthy_reasons(
    thread: ThreadHealth, doing: ThreadActivity | None, stuck_after_s: float, now_s: float
) -> Iterator[str]:
    """Yield a line for each reason why a thread is not healthy."""
    if doing is not None and (doing.is_stuck or doing.location is ThreadLocation.REPLACEMENT):
        yield f"{thread.name} {describe_activity(doing, now_s)}"
    if thread.trouble and thread.trouble_s >= stuck_after_s:
        yield f"{thread.name} has not committed for {thread.trouble_s:.0f} s: {thread.trouble}"
    if thread.group:
        yield f"{thread.name}: {thread.group}"
    if thread.silent_s >= stuck_after_s:
        yield f"{thread.name} has had no answer from its group for {thread.silent_s:.0f} s"
    elif thread.unanswered_s:
        yield (
            f"{thread.name} waits for the answer to a heartbeat for {thread.unanswered_s:.0f} s: "
            "the coordinator of its group hangs, or the network drops packets"
        )
    for each in thread.waiting:
        if each.seconds >= stuck_after_s:
            why = each.failure or "no answer"
            yield (
                f"{thread.name}: task {each.task} has waited {each.seconds:.0f} s for its "
                f"producer: {why}"
            )
