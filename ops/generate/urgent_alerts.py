"""Define the alerts of priority P0, which wake somebody: work has stopped, or soon will."""

from __future__ import annotations

from ops.generate.alerts import Alert

_LOOK_AT_GROUP = "millrace group describe APPLICATION --bootstrap-servers SERVERS"
_LOOK_AT_HEALTH = "curl -s http://ADDRESS/health"

URGENT_ALERTS = (
    Alert(
        name="MillraceWorkerDown",
        priority="P0",
        expression='up{job="millrace-worker"} == 0',
        hold="1m",
        summary="The worker {{ $labels.instance }} does not answer Prometheus",
        consequence="Its tasks move to other workers, which restore their stores first; with none "
        "left, nothing is processed.",
        end="With the first scrape that it answers. A worker that was taken away for "
        "good fires until it is no target of Prometheus any more.",
        commands=(_LOOK_AT_GROUP, "millrace metrics APPLICATION", "millrace logs analyze LOG"),
        explanation="The process has ended, its machine is away, or the port is not reachable from "
        "Prometheus. If `group describe` shows the worker as a member, it works, and only the way "
        "to its port is closed. Otherwise the end of its log says why it ended. A worker that is "
        "started again within the session time-out gets its tasks back, with their stores. "
        "`millrace metrics APPLICATION` finds workers of the machine where it is typed: type it on "
        "that of the worker.",
    ),
    Alert(
        name="MillraceBrokerDown",
        priority="P0",
        expression='up{job="millrace-broker"} == 0',
        hold="1m",
        summary="The broker {{ $labels.instance }} does not answer Prometheus",
        consequence="No application of this broker commits; their lag grows until it is back.",
        end="With the first scrape that it answers. The applications need nobody then.",
        commands=(
            "millrace topics list --bootstrap-servers SERVERS",
            "millrace broker status --state-dir DIRECTORY",
            "df -h DIRECTORY",
        ),
        explanation="Applications wait for a broker and go on by themselves when it is back. The "
        "end of the broker's log says why it ended: a full disk and a damaged log are named there, "
        "with what to do ([broker](broker.md)).",
    ),
    Alert(
        name="MillraceWorkerNotLive",
        priority="P0",
        expression="millrace_worker_live == 0",
        hold="1m",
        summary="The worker {{ $labels.instance }} needs a restart",
        consequence="Its tasks make no progress until it is started again.",
        end="By itself if the function that hangs returns. A worker that an error has "
        "ended must be started again.",
        commands=(_LOOK_AT_HEALTH, _LOOK_AT_GROUP),
        explanation="The worker has ended by an error, or a thread hangs outside of a broker call. "
        "`/health` has a line for each thing that is wrong, and the stack of a thread that hangs "
        "([health](operations.md#health)). Read it before the restart: afterwards it is gone.",
    ),
    Alert(
        name="MillraceThreadFailed",
        priority="P0",
        expression="sum by (application, instance) "
        "(increase(millrace_thread_replaced_threads_total[10m])) > 0",
        hold="0m",
        summary="A stream thread of {{ $labels.instance }} has failed and was replaced",
        consequence="The same record will fail again after each replacement: its partition stands "
        "still.",
        end="Ten minutes after the last replacement, if the record is skipped, or "
        "what it needs is there again.",
        commands=(_LOOK_AT_HEALTH, "millrace logs analyze LOG"),
        explanation="An error has ended a stream thread, and `uncaught_exception_handler` has "
        "replaced it. The log has the error with the topic, partition and offset of the record. "
        "What a record does may be answered by a handler or a dead-letter topic "
        "([errors](errors.md)).",
    ),
    Alert(
        name="MillraceStoresCorrupted",
        priority="P0",
        expression="sum by (application, instance) "
        "(rate(millrace_thread_tasks_corrupted_total[5m])) > 0.1",
        hold="2m",
        summary="Stores of {{ $labels.instance }} are rebuilt again and again",
        consequence="Tasks restore instead of processing; the lag grows.",
        end="Some minutes after the last rebuild. While the changelog goes on losing "
        "records it does not end by itself.",
        commands=(
            "millrace state inspect APPLICATION --state-dir DIRECTORY",
            "millrace topics describe CHANGELOG --bootstrap-servers SERVERS",
        ),
        explanation="A store whose offset does not fit its changelog is rebuilt, and the log says "
        "why. Once after a crash or a deleted changelog is the intended recovery; a rate means "
        "that something goes on deleting: look for the retention of the changelog, and for disk "
        "errors in the system's log.",
    ),
    Alert(
        name="MillraceTransactionsTimeOut",
        priority="P0",
        # A producer that hangs times out once a time-out, which is six times a minute by default.
        expression="sum by (instance) "
        '(increase(millrace_transactions_ended_total{outcome="abort",cause="timeout"}[5m])) > 5',
        hold="2m",
        summary="The broker {{ $labels.instance }} aborts transactions that took too long",
        consequence="What they wrote is processed again; applications make no progress if each "
        "transaction takes too long.",
        end="When no more than five were timed out in the last five minutes. A producer that is "
        "too slow goes on until its settings are changed.",
        commands=("millrace txn list --bootstrap-servers SERVERS", _LOOK_AT_GROUP),
        explanation="A producer began a transaction and neither committed nor aborted it within "
        "its time-out: it has ended, hangs, or its commits are slower than the time-out. Compare "
        "`commit_interval_ms` with `transaction_timeout_ms`, by default 100 and 10 000. One after "
        "a worker was killed is normal, and does not fire. On Apache Kafka there is no such "
        "figure; `millrace txn list` shows what is open.",
    ),
    Alert(
        name="MillraceCoordinatorShardFailed",
        priority="P0",
        expression="max by (instance, shard) (millrace_shard_failed) == 1",
        hold="0m",
        summary="The coordinator's shard {{ $labels.shard }} of {{ $labels.instance }} is damaged",
        consequence="Groups and transactions of this shard get no answer.",
        end="Not by itself, and not by a restart: the shard's log must be repaired.",
        commands=("curl -s http://ADDRESS/metrics | grep '^millrace_shard_failed.* 1'",),
        explanation="The shard's log could not be read back, and the broker serves nothing that it "
        "could not prove. Its log names the file and the position, and "
        "[Repair](broker.md#repair) has the steps.",
    ),
    Alert(
        name="MillracePartitionsOffline",
        priority="P0",
        expression="max by (instance) (millrace_partitions_offline) > 0",
        hold="1m",
        summary="{{ $value }} partitions of {{ $labels.instance }} are offline",
        consequence="Applications that read or write them wait.",
        end="By itself when the broker that leads the partition is back. A log that "
        "can't be used must be repaired.",
        commands=(
            "millrace topics list --bootstrap-servers SERVERS",
            "millrace topics describe TOPIC --bootstrap-servers SERVERS",
        ),
        explanation="A partition has no leader, or its log can't be used. On Apache Kafka alert on "
        "its own `OfflinePartitionsCount` and `UnderReplicatedPartitions`; a worker that waits for "
        "a leader says so in `/health` in either case.",
    ),
)
