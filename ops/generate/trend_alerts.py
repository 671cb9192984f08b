"""Define the alerts of priority P2: what differs from before, to be looked at some day."""

from __future__ import annotations

from ops.generate.alerts import Alert

_LOOK_AT_METRICS = "millrace metrics ADDRESS --watch"

TREND_ALERTS = (
    Alert(
        name="MillraceThroughputFell",
        priority="P2",
        expression="sum by (application) (rate(millrace_thread_records_total[1h])) < "
        "0.5 * sum by (application) (rate(millrace_thread_records_total[1h] offset 1w))",
        hold="1h",
        summary="{{ $labels.application }} processes less than half of the week before",
        consequence="Its input has become less, or it falls behind.",
        end="When the rate is that of the week before, or after a week, when the "
        "lower one is what it is compared with.",
        commands=("millrace group describe APPLICATION --bootstrap-servers SERVERS",),
        explanation="If the lag is small, less arrives, or nothing: look at who writes the input.",
    ),
    Alert(
        name="MillraceLatencyRose",
        priority="P2",
        expression="histogram_quantile(0.99, sum by (application, le) "
        "(rate(millrace_end_to_end_latency_seconds_bucket[1h]))) > "
        "2 * histogram_quantile(0.99, sum by (application, le) "
        "(rate(millrace_end_to_end_latency_seconds_bucket[1h] offset 1w)))",
        hold="1h",
        summary="Results of {{ $labels.application }} are twice as late as the week before",
        consequence="Limits that readers rely on will be missed.",
        end="When the latency is that of the week before, or after a week, when the "
        "higher one is what it is compared with.",
        commands=(_LOOK_AT_METRICS,),
        explanation="Compare the commit latency and the process ratio with the week before.",
    ),
    Alert(
        name="MillraceRestoreSlow",
        priority="P2",
        expression="max by (application, instance, task, store) (millrace_restore_records_left) "
        "> 0",
        hold="30m",
        summary="The store {{ $labels.store }} {{ $labels.task }} has been restored for half an "
        "hour",
        consequence="The partitions of its task wait.",
        end="When the restore is done.",
        commands=(_LOOK_AT_METRICS, "curl -s http://ADDRESS/metrics | grep restore_seconds_left"),
        explanation="A standby task (`num_standby_replicas`) makes a restore short. "
        "`millrace_restore_seconds_left` says when this one is done.",
    ),
    Alert(
        name="MillraceRestoresOften",
        priority="P2",
        expression="sum by (application) (increase(millrace_thread_rebalances_total[1d])) > 100 "
        "and sum by (application) (increase(millrace_thread_restored_records_total[1d])) > 0",
        hold="1h",
        summary="{{ $labels.application }} rebalances and restores more than a hundred times a day",
        consequence="Each of them delays results.",
        end="When less than a hundred are left in the last 24 hours.",
        commands=("millrace group describe APPLICATION --bootstrap-servers SERVERS",),
        explanation="Workers come and go, or fall silent: look for sessions that expire, and for "
        "machines that are too small.",
    ),
    Alert(
        name="MillraceTasksSkewed",
        priority="P2",
        expression="max by (application, subtopology) "
        "(rate(millrace_task_process_seconds_total[10m])) > 0.5 and "
        "max by (application, subtopology) (rate(millrace_task_process_seconds_total[10m])) > "
        "3 * avg by (application, subtopology) (rate(millrace_task_process_seconds_total[10m]))",
        hold="10m",
        summary="One task of {{ $labels.application }}, part {{ $labels.subtopology }}, has most of"
        " the work",
        consequence="More workers don't help: a partition is processed by one thread.",
        end="Some minutes after the task has less to do. Keys stay skewed until they are changed.",
        commands=("millrace group describe APPLICATION --bootstrap-servers SERVERS",),
        explanation="A few keys have most of the records. The lag by partition shows which "
        "partition it is; a key with a suffix, aggregated in two steps, spreads it.",
    ),
)
