"""Define the figures of tasks, steps, topics and caches under Kafka Streams' names."""

from __future__ import annotations

from streams.monitoring.definitions.kafka_names import define_figure
from streams.monitoring.definitions.rocksdb import TASK_LABELS

TASK_GROUP = "stream-task-metrics"
_TASK_FIGURES = (
    ("process-latency-avg", "Average milliseconds of slices of the task", "milliseconds"),
    ("process-latency-max", "Longest milliseconds of slices of the task", "milliseconds"),
    ("process-rate", "Records a second that the task has processed", "records"),
    ("process-total", "Records that the task has processed", "records"),
    ("punctuate-latency-avg", "Average milliseconds of calls of the task's timers", "milliseconds"),
    ("punctuate-latency-max", "Longest milliseconds of calls of the task's timers", "milliseconds"),
    ("punctuate-rate", "Calls a second of those of the task's timers that were due", ""),
    ("punctuate-total", "Calls of those of the task's timers that were due", ""),
    ("record-lateness-avg", "Average milliseconds of records behind stream time", "milliseconds"),
    ("record-lateness-max", "Most milliseconds of a record behind stream time", "milliseconds"),
    ("enforced-processing-rate", "Records a second that waited for no empty partition", "records"),
    ("enforced-processing-total", "Records that waited for no empty partition", "records"),
    ("active-buffer-count", "Records of the task that were polled and wait", "records"),
    ("cache-size-bytes-total", "Bytes that the object cache has for stores of the task", "bytes"),
    ("restore-rate", "Changelog records a second that restores of the task read", "records"),
    ("restore-total", "Changelog records that were read to restore the task", "records"),
)
_TASKS = (
    *(
        define_figure(TASK_GROUP, metric, text, TASK_LABELS, unit, level="debug")
        for metric, text, unit in _TASK_FIGURES
    ),
    *(
        define_figure(TASK_GROUP, metric, text, TASK_LABELS, unit)
        for metric, text, unit in (
            ("active-process-ratio", "Share of the task in its thread's time in slices", ""),
            ("dropped-records-rate", "Records a second that the task has dropped", "records"),
            ("dropped-records-total", "Records that the task has dropped so far", "records"),
            (
                "restore-remaining-records-total",
                "Changelog records that the stores of a task have left to restore, at most",
                "records",
            ),
        )
    ),
)

NODE_GROUP = "stream-processor-node-metrics"
NODE_LABELS = (*TASK_LABELS, "processor_node_id")
_LATENCY = "milliseconds from a record's timestamp until a first or last step had it, sampled"
_NODES = (
    *(
        define_figure(NODE_GROUP, metric, text, NODE_LABELS, unit, level="debug")
        for metric, text, unit in (
            ("process-rate", "Records a second that a source step of the task has got", "records"),
            ("process-total", "Records that a source step of the task has got", "records"),
            ("suppression-emit-rate", "Updates a second that a suppression has emitted", ""),
            ("suppression-emit-total", "Updates that a suppression has emitted so far", ""),
            (
                "window-aggregate-final-emit-latency-avg",
                "Average milliseconds of the emission of windows that have closed",
                "milliseconds",
            ),
            (
                "window-aggregate-final-emit-latency-max",
                "Longest milliseconds of the emission of windows that have closed",
                "milliseconds",
            ),
            ("window-aggregate-final-emit-rate", "Closed windows a second that were emitted", ""),
            ("window-aggregate-final-emit-total", "Closed windows that were emitted so far", ""),
        )
    ),
    *(
        define_figure(
            *(NODE_GROUP, f"record-e2e-latency-{metric}", f"{said} {_LATENCY}"),
            *(NODE_LABELS, "milliseconds"),
        )
        for metric, said in (("avg", "Average"), ("min", "Fewest"), ("max", "Most"))
    ),
)

TOPIC_GROUP = "stream-topic-metrics"
_TOPICS = tuple(
    define_figure(TOPIC_GROUP, metric, text, (*NODE_LABELS, "topic"), unit)
    for metric, text, unit in (
        (
            "records-consumed-total",
            "Records that a source step of the task has got, those rolled back later included",
            "records",
        ),
        (
            "bytes-consumed-total",
            "Bytes of the records that a source step has got, some of which are measured",
            "bytes",
        ),
        (
            "records-produced-total",
            "Records that a sink of the task has written, those rolled back later included",
            "records",
        ),
        (
            "bytes-produced-total",
            "Bytes of the records that a sink has written, some of which are measured",
            "bytes",
        ),
    )
)

CACHE_GROUP = "stream-record-cache-metrics"
_CACHES = tuple(
    define_figure(
        *(CACHE_GROUP, f"hit-ratio-{metric}"),
        f"{said} share of the keys written by a commit that the object cache had",
        (*TASK_LABELS, "record_cache_id"),
        level="debug",
    )
    for metric, said in (("avg", "Average"), ("min", "Smallest"), ("max", "Largest"))
)

TASK_DEFINITIONS = (*_TASKS, *_NODES, *_TOPICS, *_CACHES)
