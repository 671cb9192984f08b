"""Define the alerts of priority P1: something is wrong that somebody must see to today."""

from __future__ import annotations

from ops.generate.alerts import Alert

_LOOK_AT_GROUP = "millrace group describe APPLICATION --bootstrap-servers SERVERS"
_LOOK_AT_HEALTH = "curl -s http://ADDRESS/health"
_LOOK_AT_METRICS = "millrace metrics ADDRESS --watch"
_LOOK_AT_TRANSACTIONS = "millrace txn list --bootstrap-servers SERVERS"
_LOOK_AT_DEAD_LETTERS = (
    "millrace consume DEAD_LETTER_TOPIC --from 15m --until-end --metadata "
    "--bootstrap-servers SERVERS"
)
_ABORT_HANGING = (
    "millrace txn abort --topic TOPIC --partition PARTITION --start-offset OFFSET "
    "--bootstrap-servers SERVERS"
)
_SHORTEN_RETENTION = (
    "kafka-configs.sh --bootstrap-server SERVERS --alter --entity-type topics "
    "--entity-name TOPIC --add-config retention.ms=MILLISECONDS"
)

WARNING_ALERTS = (
    Alert(
        name="MillraceWorkerUnhealthy",
        priority="P1",
        expression="millrace_worker_healthy == 0 unless millrace_worker_live == 0",
        hold="2m",
        summary="The worker {{ $labels.instance }} can't process, and waits",
        consequence="The lag of its partitions grows until the cause is gone.",
        end="By itself as soon as the cause is gone: the worker goes on trying.",
        commands=(_LOOK_AT_HEALTH, _LOOK_AT_GROUP),
        explanation="No broker answers, a partition has no leader, or a thread has failed since "
        "its last commit. A restart would not help; `why` in `/health` names the cause.",
    ),
    Alert(
        name="MillraceThreadStuck",
        priority="P1",
        expression="max by (application, instance, thread, where) (millrace_thread_stuck) == 1",
        hold="1m",
        summary="{{ $labels.thread }} of {{ $labels.instance }} is in one function: "
        "{{ $labels.where }}",
        consequence="The thread's tasks make no progress; after the poll interval its group gives "
        "them away.",
        end="When the function returns. One that never does takes a restart of the "
        "worker, after its stack was read.",
        commands=(_LOOK_AT_HEALTH,),
        explanation="The thread has been in one function with one record for `stuck_after_ms`. "
        "`where` says whose code it is: the application's function, a store or a broker call. "
        "`/health` has the stack and the record.",
    ),
    Alert(
        name="MillraceCommitsStalled",
        priority="P1",
        expression="max by (application, instance, thread) "
        "(millrace_thread_commit_age_seconds) > 60 and on (application, instance, thread) "
        "sum by (application, instance, thread) (millrace_consumer_lag) > 0",
        hold="1m",
        summary="{{ $labels.thread }} of {{ $labels.instance }} has records to read and has not "
        "committed for {{ $value | humanizeDuration }}",
        consequence="Results are not visible, and are computed again after a crash.",
        end="With the next commit.",
        commands=(_LOOK_AT_HEALTH, _LOOK_AT_TRANSACTIONS),
        explanation="A thread that has input commits every `commit_interval_ms`. If it doesn't, it "
        "is in a slow function, waits for a broker, or its transactions fail: the log names it. A "
        "thread without input does not commit, and does not fire this alert.",
    ),
    Alert(
        name="MillraceCommitsSlow",
        priority="P1",
        expression="max by (application, instance, thread_id) "
        "(kafka_streams_stream_thread_metrics_commit_latency_max) > 10000",
        hold="1m",
        summary="A commit of {{ $labels.thread_id }} of {{ $labels.instance }} took "
        "{{ $value | humanize }} ms",
        consequence="A commit that outlasts the transaction's time-out is aborted, and its records "
        "are processed again.",
        end="A minute after the last slow commit.",
        commands=(_LOOK_AT_METRICS, _LOOK_AT_TRANSACTIONS),
        explanation="The longest commit of the last 30 to 60 seconds: from the writing of the "
        "stores' changes until the coordinator has answered. A slow disk of the worker, a broker "
        "that is overloaded, or very large transactions; commit more often, or raise "
        "`transaction_timeout_ms`.",
    ),
    Alert(
        name="MillraceLagGrows",
        priority="P1",
        expression="sum by (application, topic) (millrace_consumer_lag) > 10000 and "
        "sum by (application, topic) (deriv(millrace_consumer_lag[10m])) > 0",
        hold="10m",
        summary="{{ $labels.application }} falls behind on {{ $labels.topic }}: "
        "{{ $value | humanize }} records",
        consequence="Results become late; records whose retention ends before they are read are "
        "lost.",
        end="By itself when the lag falls: a peak needs nobody, an input that stays larger does.",
        commands=(_LOOK_AT_GROUP, _LOOK_AT_METRICS),
        explanation="More arrives than is processed. If one partition has most of the lag, its "
        "keys are skewed; if all have it, add threads or workers, up to the number of partitions. "
        "The process ratio and the commit latency tell whether the functions or the broker limit.",
    ),
    Alert(
        name="MillraceResultsLate",
        priority="P1",
        expression="histogram_quantile(0.99, sum by (application, le) "
        "(rate(millrace_end_to_end_latency_seconds_bucket[5m]))) >= 60",
        hold="5m",
        summary="Results of {{ $labels.application }} are later than a minute",
        consequence="Windows close late, and readers see old results.",
        end="Five minutes after the last late result; also if no input comes.",
        commands=(_LOOK_AT_METRICS, _LOOK_AT_GROUP),
        explanation="The time from a record's timestamp until its results can be read, of one "
        "record in a hundred. It is also high while an application reads old records, as after a "
        "reset: then it falls by itself.",
    ),
    Alert(
        name="MillraceRecordsDropped",
        priority="P1",
        expression="sum by (application) (rate(millrace_thread_dropped_total[5m])) - "
        "sum by (application) (rate(millrace_thread_dead_letters_total[5m])) > 1",
        hold="5m",
        summary="{{ $labels.application }} drops {{ $value | humanize }} records a second",
        consequence="They are in no result.",
        end="Five minutes after the last such record. What was dropped does not come back.",
        commands=(_LOOK_AT_METRICS, "millrace logs analyze LOG"),
        explanation="Records without a key or value, such that a handler skips, or late ones "
        "([late records](windows.md#late-records)). The log names the first of each kind with its "
        "topic, partition and offset.",
    ),
    Alert(
        name="MillraceDeadLetters",
        priority="P1",
        expression="sum by (application) (rate(millrace_thread_dead_letters_total[5m])) > 1",
        hold="5m",
        summary="{{ $labels.application }} writes {{ $value | humanize }} dead letters a second",
        consequence="They are in no result until they are processed again.",
        end="Five minutes after the last such record. What was written stays in the "
        "dead-letter topic until somebody [processes it again](errors.md).",
        commands=(_LOOK_AT_DEAD_LETTERS,),
        explanation="Records that a function or a serde refuses, in such a number that a producer "
        "of the input or a new version of the application is wrong. The headers of a dead letter "
        "say which error, from which topic, partition and offset ([errors](errors.md)).",
    ),
    Alert(
        name="MillraceFencing",
        priority="P1",
        expression="60 * sum by (application) (rate(millrace_thread_tasks_migrated_total[5m])) > 1",
        hold="10m",
        summary="{{ $labels.application }} loses its tasks {{ $value | humanize }} times a minute",
        consequence="Work is thrown away and repeated; with enough of it, no progress.",
        end="Some minutes after the last loss. Two processes with one identity do not "
        "end by themselves: stop one.",
        commands=(_LOOK_AT_GROUP, "millrace logs analyze LOG", _LOOK_AT_TRANSACTIONS),
        explanation="A rebalance takes tasks away, and is over in less than the ten minutes that "
        "this alert waits. What goes on is two processes with one identity (a state directory that "
        "was copied), members that fall silent for longer than the session time-out, or a "
        "transaction time-out that is too short.",
    ),
    Alert(
        name="MillraceRecoveries",
        priority="P1",
        expression="60 * sum by (application, instance) "
        "(rate(millrace_thread_recoveries_total[5m])) > 1",
        hold="10m",
        summary="{{ $labels.instance }} starts over from its last commit "
        "{{ $value | humanize }} times a minute",
        consequence="Work is repeated; with enough of it, no progress.",
        end="Some minutes after the last recovery, by itself if a broker was the cause.",
        commands=(_LOOK_AT_HEALTH, "millrace logs analyze LOG", _LOOK_AT_TRANSACTIONS),
        explanation="Each recovery has its error in the log. The counters "
        "`millrace_thread_outcomes_unknown_total`, `..._values_refused_total` and "
        "`..._writes_refused_total` tell the kinds apart.",
    ),
    Alert(
        name="MillraceTransactionHangs",
        priority="P1",
        expression="max by (instance) (millrace_transactions_overdue) > 0 or "
        "max by (instance) (millrace_log_open_transaction_seconds) > 900",
        hold="2m",
        summary="A transaction on {{ $labels.instance }} is open for longer than its time-out",
        consequence="Readers of committed records, this application included, stop before it.",
        end="By itself when the coordinator aborts it, at its time-out. One that the "
        "coordinator does not know stays until it is aborted by hand.",
        commands=(
            _LOOK_AT_TRANSACTIONS,
            "millrace txn list --topic TOPIC --bootstrap-servers SERVERS",
            _ABORT_HANGING,
        ),
        explanation="The coordinator aborts a transaction that is older than its time-out, at most "
        "15 minutes (`transaction.max.timeout.ms`). One that stays open in a partition is unknown "
        "to the coordinator: `txn list --topic` shows it as hanging, and `txn abort` ends it.",
    ),
    Alert(
        name="MillraceBrokerBusy",
        priority="P1",
        expression="rate(millrace_event_loop_busy_seconds_total[5m]) > 0.7",
        hold="5m",
        summary="The event loop of {{ $labels.instance }} is busy {{ $value | humanizePercentage }}"
        " of the time",
        consequence="Requests wait for each other: latencies and commits take longer.",
        end="Some minutes after the load has fallen.",
        commands=("curl -s http://ADDRESS/metrics | grep request_seconds_sum",),
        explanation="This is what a request handler's idle ratio below 0.3 is elsewhere. The APIs "
        "with the most seconds are the cause: larger batches, longer commit intervals or fewer "
        "clients help.",
    ),
    Alert(
        name="MillraceLogFlushSlow",
        priority="P1",
        expression="histogram_quantile(0.99, sum by (instance, le) "
        "(rate(millrace_log_flush_seconds_bucket[5m]))) > 1",
        hold="2m",
        summary="Flushes of {{ $labels.instance }} take {{ $value | humanizeDuration }}",
        consequence="Commits wait for the disk; with seconds, transactions time out.",
        end="Five minutes after the last slow flush.",
        commands=("iostat -x 1 5", "df -h DIRECTORY"),
        explanation="The disk is slow, shared or nearly full.",
    ),
    Alert(
        name="MillraceProduceRequestsWait",
        priority="P1",
        expression='sum by (instance) (millrace_requests_waiting{api="Produce"}) > 1000',
        hold="2m",
        summary="{{ $value }} produce requests wait on {{ $labels.instance }}",
        consequence="Producers fill their buffers, and applications stop reading.",
        end="By itself when the disk has caught up, or the node is back.",
        commands=("curl -s http://ADDRESS/metrics | grep requests_waiting",),
        explanation="More is written than the disk takes, or a node that must have a copy is away.",
    ),
    Alert(
        name="MillraceBrokerDiskFull",
        priority="P1",
        expression="millrace_disk_free_bytes / millrace_disk_total_bytes < 0.1",
        hold="1m",
        summary="{{ $value | humanizePercentage }} of the disk of {{ $labels.instance }} is free",
        consequence="A broker whose disk is full refuses writes, and stops.",
        end="When a tenth is free again: by itself if topics' retention deletes more "
        "than is written.",
        commands=(
            "df -h DIRECTORY",
            "curl -s http://ADDRESS/metrics | grep millrace_log_bytes",
            _SHORTEN_RETENTION,
        ),
        explanation="`millrace_log_bytes` shows which topics are large. Shorten their retention, "
        "or give the disk more room.",
    ),
    Alert(
        name="MillraceQueriesFail",
        priority="P1",
        expression="sum by (application, instance) "
        '(rate(millrace_query_latency_seconds_count{status=~"5.."}[5m])) / '
        "sum by (application, instance) (rate(millrace_query_latency_seconds_count[5m])) > 0.05",
        hold="5m",
        summary="{{ $labels.instance }} answers {{ $value | humanizePercentage }} of its queries "
        "with an error",
        consequence="Who asks has no answer; a wrong one is never given.",
        end="Five minutes after the last error, so by itself after a rebalance or a restore.",
        commands=(
            _LOOK_AT_METRICS,
            _LOOK_AT_GROUP,
            "millrace doctor APPLICATION --bootstrap-servers SERVERS",
        ),
        explanation="`detail` of such an answer says why: tasks that move or are restored, which "
        "passes; a worker without `query_port`; another one that can't be reached by its "
        "`application_server`; a standby that is older than the query allows; or limits of "
        "requests at a time, which `millrace_query_requests_refused_total` counts.",
    ),
    Alert(
        name="MillraceQueriesRefused",
        priority="P1",
        expression="sum by (application, instance, limit) "
        "(rate(millrace_query_requests_refused_total[5m])) > 1",
        hold="2m",
        summary="{{ $labels.instance }} refuses {{ $value | humanize }} connections or queries a "
        "second by its limit of {{ $labels.limit }}",
        consequence="Clients that try again at once add to what it can't answer.",
        end="Some minutes after less is asked.",
        commands=(_LOOK_AT_METRICS,),
        explanation="More is asked at a time than a worker answers: 512 `connections`, which it "
        "closes, 128 `requests` of each scope, 16 `reads` that may wait, or 4 `functions` of "
        "registered queries ([limits](queries.md#limits)). More workers help, and asking the "
        "worker that has the key. "
        "Of `functions`, `millrace_query_functions_overdue` names those that nobody waits for.",
    ),
    Alert(
        name="MillraceQueriesSlow",
        priority="P1",
        expression="histogram_quantile(0.99, sum by (application, instance, le) "
        "(rate(millrace_query_latency_seconds_bucket[5m]))) > 2.5",
        hold="10m",
        summary="One of a hundred queries of {{ $labels.instance }} takes longer than "
        "{{ $value | humanizeDuration }}",
        consequence="Clients give up before they have their answer.",
        end="Some minutes after the last slow query.",
        commands=(_LOOK_AT_METRICS, _LOOK_AT_HEALTH),
        explanation="A query waits 2 s by default. It waits for positions that inputs have not "
        "reached (`at-least`), for workers that hang, and beside a stream thread that is always "
        "busy. A long range counts with the time in which its client takes it.",
    ),
    Alert(
        name="MillraceStandbyBehind",
        priority="P1",
        expression="max by (application, instance, task, store) (millrace_standby_lag) > 10000",
        hold="10m",
        summary="The standby of {{ $labels.store }} {{ $labels.task }} on {{ $labels.instance }} is"
        " {{ $value | humanize }} records behind",
        consequence="If the active task fails, its successor restores that much first.",
        end="By itself when it has caught up; the figure must become smaller.",
        commands=(_LOOK_AT_GROUP, _LOOK_AT_METRICS),
        explanation="More than `acceptable_recovery_lag` (10 000): the standby counts as not "
        "caught up, and tasks aren't moved to it. Queries that let standbys answer get answers as "
        "old as that, or errors, by their bounds. A standby that has just begun needs some time; "
        "one that stays behind lacks CPU, disk or network.",
    ),
)
