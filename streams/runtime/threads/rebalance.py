"""Keep one thread's membership of its group while its tasks go on, and take its assignments over.

signal                                what happens
REBALANCE, or inputs have other       join beside the tasks, which go on
partitions and this member leads, or
it is time to probe (`probing`)
ASSIGNED                              take the assignment over, see below
LOST, while tasks are assigned        TaskMigrated: the recovery closes all without a commit
NOTHING                               nothing

An assignment is of one generation. What the tasks did in the one before can be committed in it,
since nobody else has them yet: the leader leaves each task with its owner until it is revoked
(KIP-429; `coordinator.assignors.task_ownership`). Why that is safe is in docs/decisions/0037.

a running task is                     what happens to it
assigned, from the generation before  it goes on
revoked                               all tasks are committed, it is closed, and the member joins
                                      again at once
neither                               closed without a commit, since another member may run it
any, of an earlier generation         rolled back, since another member may have run it
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from streams.common.host import Host
from streams.errors import ApplicationShutdown, OutcomeUnknown, TaskMigrated
from streams.membership.group_member import GroupMember, Membership, MembershipSignal
from streams.membership.protocol import AssignmentInfo, EndpointTasks, SubscriptionInfo
from streams.runtime.counters import ThreadCounters
from streams.runtime.threads.probing import ProbingRebalance
from streams.runtime.threads.thread_state import ThreadState
from streams.runtime.threads.thread_tasks import ThreadTasks
from streams.runtime.threads.vanished_topics import VanishedTopicCheck

log = logging.getLogger(__name__)

_ASSIGNMENT_WAIT_MAX_S = 3.0
"""The most seconds that a commit waits for the assignment of a generation that has begun.

Until then the group accepts no commit, so that nothing would be gained by going on.
"""
_NO_GENERATION = -1


class ThreadRebalance:
    """Joins one thread to its group whenever it has to, and gives the assignment to its tasks.

    `commit_tasks` commits all tasks, in the generation that the member has entered last, and if its
    argument is true those too of which only a position has moved.
    `mend_topics_and_compare_inputs` is asked by the group's leader, every
    `input_check_interval_ms`, whether inputs have other partitions, and by any member for which
    `vanished_topics` says so. `fetch_source_topics_or_last_known` names the topics that are read,
    to the group; `adopt_assignment` takes over what the leader has assigned. `directory_id`,
    `process_id`, `client_tags`, `rack` and `endpoint` tell the leader where the member runs, and
    where its worker answers queries. `assignment_wait_s` is how long to wait for an assignment
    while no task runs. Kafka Streams' counterpart is StreamsRebalanceListener.
    """

    def __init__(
        self,
        thread_name: str,
        host: Host,
        member: GroupMember,
        tasks: ThreadTasks,
        counters: ThreadCounters,
        *,
        commit_tasks: Callable[[bool], object],
        mend_topics_and_compare_inputs: Callable[[], bool],
        fetch_source_topics_or_last_known: Callable[[], tuple[str, ...]],
        vanished_topics: VanishedTopicCheck,
        adopt_assignment: Callable[[AssignmentInfo], AssignmentInfo],
        on_state_change: Callable[[ThreadState], None],
        input_check_interval_ms: int,
        assignment_wait_s: float,
        directory_id: str,
        process_id: str,
        client_tags: Mapping[str, str],
        rack: str,
        endpoint: str,
    ) -> None:
        self._thread_name = thread_name
        self._host = host
        self._member = member
        self._tasks = tasks
        self._counters = counters
        self._commit_tasks = commit_tasks
        self._are_inputs_changed = mend_topics_and_compare_inputs
        self._list_source_topics = fetch_source_topics_or_last_known
        self._vanished_topics = vanished_topics
        self._adopt_assignment = adopt_assignment
        self._on_state_change = on_state_change
        self._input_check_interval_ms = input_check_interval_ms
        self._assignment_wait_s = assignment_wait_s
        self._directory_id = directory_id
        self._process_id = process_id
        self._client_tags = client_tags
        self._rack = rack
        self._endpoint = endpoint
        self._is_endpoint_repeated = False
        """Whether the member has joined once more since the group knew another endpoint of it."""
        self._previous_tasks: tuple[str, ...] = ()
        """The tasks that were assigned last, kept while the membership is lost."""
        self._owned_tasks: tuple[str, ...] = ()
        """The tasks that the member owns, in its assignment of `_owned_generation`."""
        self._owned_generation = _NO_GENERATION
        self._must_join = True
        self._probing = ProbingRebalance(host)
        self._input_check_at_s = 0.0

    @property
    def can_commit(self) -> bool:
        """Return whether the member is in a generation in which its tasks may commit now.

        Between two generations it can't: the group refuses the former, and what is assigned in the
        next is not known. Without transactions it can't during a whole join: if the group refused
        the offsets then, the changelogs would have what the next owner does again.
        """
        member = self._member
        if member.is_generation_over:
            return False
        return self._tasks.is_transactional or not member.is_joining

    def require_commit_membership(self) -> Membership:
        """Return the membership in which a transaction is committed.

        If the group has begun the next generation since the commit began, it is that of the next
        one: the group refuses the one before. What the member has processed is its own until it has
        given it up, whether it is assigned again or revoked; not so if the member has missed a
        generation.

        Raises: TaskMigrated if the member has none: a group without members would take the offsets.
        """
        member = self._member
        if member.is_joining and member.is_generation_over:
            answered = member.peek_assignment(_ASSIGNMENT_WAIT_MAX_S)
            if answered is not None and self._is_owner_in(*answered):
                return answered[0]
        current = member.current_membership
        if current.generation < 0:
            raise TaskMigrated("the thread is no member of its group: nothing can be committed")
        return current

    def _is_owner_in(self, membership: Membership, assigned: AssignmentInfo) -> bool:
        """Return whether uncommitted tasks were this member's up to its new generation."""
        dirty = {name for name, task in self._tasks.by_name.items() if task.commit_needed}
        return membership.generation == self._owned_generation + 1 and dirty <= {
            *assigned.tasks,
            *assigned.revoked,
        }

    def maintain_membership(self) -> None:
        """Read the membership's signal, join the group if need be, and take an assignment over.

        Raises: TaskMigrated where the coordinator does not know this member any more;
        ApplicationShutdown if a member asks all of them to end.
        """
        member = self._member
        match member.read_current_signal_or_raise():
            case MembershipSignal.LOST if self._tasks.assignment is not None:
                raise TaskMigrated("the coordinator does not know this member any more")
            case MembershipSignal.REBALANCE:
                self._must_join = True
            case _ if self._probing.try_take_due_rejoin():
                log.info("%s: joins again, to move tasks that have warmed up", self._thread_name)
                self._must_join = True
            case _ if self._are_inputs_known_to_have_changed():
                log.info(
                    "%s: inputs have other partitions: tasks are assigned anew",
                    self._thread_name,
                )
                self._must_join = True
        if (self._must_join or self._tasks.assignment is None) and not member.is_joining:
            self.start_joining()
        if member.is_joining:
            wait_s = 0.0 if self._tasks.executor else self._assignment_wait_s
            try:
                assigned = member.enter_assigned_generation(wait_s)
            except Exception:
                self._must_join = True
                raise
            if assigned is not None:
                self.adopt_assignment_or_raise_shutdown(assigned)
        self._report_readiness()

    def _report_readiness(self) -> None:
        """Report REBALANCING while the group has no tasks, as topics are missing."""
        tasks = self._tasks
        is_unready = bool(self._member.unready_reason) and not tasks.by_name
        if is_unready is tasks.is_group_unready:
            return
        tasks.is_group_unready = is_unready
        if is_unready:
            self._on_state_change(ThreadState.REBALANCING)
        else:
            tasks.report_if_settled()

    def _are_inputs_known_to_have_changed(self) -> bool:
        """Return whether input partitions have changed.

        The group's leader checks it at an interval, others if they miss a topic of a pattern.
        """
        assigned = self._tasks.assignment
        if assigned is None or self._member.is_joining:
            return False
        is_due = self._member.is_leader and self._host.monotonic_s() >= self._input_check_at_s
        if not is_due and not self._vanished_topics.try_take_due_check(assigned.partitions):
            return False
        self._schedule_input_check()
        try:
            return self._are_inputs_changed()
        except OutcomeUnknown as error:
            log.info("%s: inputs are looked at another time: %s", self._thread_name, error)
            return False

    def _schedule_input_check(self) -> None:
        """Set the time of the next check of the inputs to one interval from now."""
        interval_s = self._input_check_interval_ms / 1000
        self._input_check_at_s = self._host.monotonic_s() + interval_s

    def start_joining(self) -> None:
        """Start to join the group, and tell its leader which tasks the member owns.

        All tasks are committed before. Without transactions nothing is while the member joins; with
        them a commit that the next generation overtakes has to be repeated, and the next one is due
        only after an interval in which most joins are answered.
        """
        tasks = self._tasks
        if tasks.assignment is None and not tasks.by_name:  # closed by a recovery
            self._owned_tasks, self._owned_generation = (), _NO_GENERATION
        if self.can_commit:
            self._commit_tasks(True)
        if tasks.assignment is None:
            self._on_state_change(ThreadState.REBALANCING)
        self._counters.rebalances += 1
        former = () if self._owned_tasks else self._previous_tasks
        self._must_join = False
        self._member.start_joining(
            SubscriptionInfo(
                self._owned_tasks,
                topics=self._list_source_topics(),
                former=former,
                generation=self._owned_generation,
                directory=self._directory_id,
                offsets=tasks.sum_offsets(),
                standby=tuple(tasks.standby.by_name),
                process=self._process_id,
                tags=self._client_tags,
                rack=self._rack,
                endpoint=self._endpoint,
            )
        )

    def adopt_assignment_or_raise_shutdown(self, assigned: AssignmentInfo) -> None:
        """Create, close and keep tasks as assigned in the generation that the member has entered.

        Raises: ApplicationShutdown if a member asks all of them to end.
        """
        tasks = self._tasks
        if tasks.assignment is not None:  # else it was reported before
            self._on_state_change(ThreadState.REBALANCING)
        # Until the assignment is adopted, no task may start or commit by the one before.
        tasks.assignment = None
        if assigned.shutdown:
            raise ApplicationShutdown(assigned.shutdown)
        adopted = self._adopt_assignment(assigned)
        generation = self._member.current_membership.generation
        is_next = self._member.has_kept_tasks_until(self._owned_generation, generation)
        self._previous_tasks = self._owned_tasks = adopted.tasks
        self._owned_generation = generation
        must_repeat = self._must_rejoin_with_endpoint(adopted)
        self._probing.schedule_rejoin(adopted.rejoin_ms)
        leaving = tasks.find_leaving_tasks(adopted)
        dirty = {t.name for t in leaving if t.commit_needed}
        still_owned = {*adopted.tasks, *adopted.revoked}
        try:
            if not is_next or dirty - still_owned:
                # What a task did that another may run is in one transaction with all others.
                tasks.abort_uncommitted_work(has_missed_generation=not is_next)
            elif leaving:
                # Another member may have committed more of a task that was given away at once.
                self._commit_tasks(still_owned >= {t.name for t in leaving})
        finally:
            self._must_join = bool(adopted.revoked) or must_repeat
            tasks.adopt_assignment(adopted)
            self._must_join = self._member.acknowledge_assignment(adopted) or must_repeat
        self._schedule_input_check()
        tasks.report_if_settled()

    def _must_rejoin_with_endpoint(self, adopted: AssignmentInfo) -> bool:
        """Return whether to join again, since the group knows this member by a former endpoint.

        A static member that comes back gets its former assignment without a rebalance. It joins
        once: a leader of a release without endpoints would never name this one.
        """
        is_outdated = bool(self._endpoint and adopted.tasks) and not (
            {*adopted.tasks} <= {*adopted.endpoints.get(self._endpoint, EndpointTasks()).active}
        )
        must_repeat = is_outdated and not self._is_endpoint_repeated
        self._is_endpoint_repeated = is_outdated
        return must_repeat
