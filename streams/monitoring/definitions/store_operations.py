"""Define the figures of what is done with stores, under Kafka Streams' names.

These times are in nanoseconds there, where all others are in milliseconds.
"""

from __future__ import annotations

from streams.monitoring.definitions.kafka_names import define_figure
from streams.monitoring.definitions.rocksdb import STATE_GROUP, TASK_LABELS

_KEY_VALUE = ("rocksdb_state_id", "in_memory_state_id")
_WINDOW = ("rocksdb_window_state_id", "in_memory_window_state_id")
_SESSION = ("rocksdb_session_state_id", "in_memory_session_state_id")
_ALL = (*_KEY_VALUE, *_WINDOW, *_SESSION)
SUPPRESSION_LABEL = "in_memory_suppression_state_id"
_OPERATIONS = {
    "all": ("iterators over the whole store", _KEY_VALUE),
    "commit": ("commits of the store, which hand changes to its disk", _ALL),
    "delete": ("deletions of a key", _KEY_VALUE),
    "fetch": ("look-ups of windows or sessions", (*_WINDOW, *_SESSION)),
    "flush": ("serializations of the changes of a commit", _ALL),
    "get": ("look-ups of a key, those for an update included", _KEY_VALUE),
    "prefix-scan": ("iterators over the keys of a prefix", _KEY_VALUE),
    "put": ("writes of a value, updates included", _ALL),
    "put-if-absent": ("writes of a value that is not there yet", _KEY_VALUE),
    "range": ("iterators over a range of keys", _KEY_VALUE),
    "remove": ("removals of a session", _SESSION),
    "restore": ("batches of changelog records that were loaded", _ALL),
}
"""What each operation is, and the labels of the stores that have it."""
_TIMED = (
    ("latency-avg", "Average nanoseconds of", "nanoseconds"),
    ("latency-max", "Longest nanoseconds of", "nanoseconds"),
    ("rate", "Number a second of", ""),
)
_TIMINGS = tuple(
    define_figure(
        *(STATE_GROUP, f"{operation}-{metric}", f"{said} {what}", TASK_LABELS, unit),
        one_of=labels,
        level="debug",
    )
    for operation, (what, labels) in _OPERATIONS.items()
    for metric, said, unit in _TIMED
)
_ITERATORS = (
    define_figure(
        *(STATE_GROUP, "num-open-iterators", "Iterators of the store that are open", TASK_LABELS),
        one_of=_ALL,
    ),
    *(
        define_figure(*(STATE_GROUP, metric, text, TASK_LABELS, unit), one_of=_ALL, level="debug")
        for metric, text, unit in (
            (
                "iterator-duration-avg",
                "Average nanoseconds for which an iterator was open",
                "nanoseconds",
            ),
            (
                "iterator-duration-max",
                "Longest nanoseconds for which an iterator was open",
                "nanoseconds",
            ),
            (
                "oldest-iterator-open-since-ms",
                "When the oldest open iterator began, in milliseconds since 1970",
                "milliseconds",
            ),
        )
    ),
)
_BUFFERS = tuple(
    define_figure(
        STATE_GROUP,
        f"suppression-buffer-{metric}-{extreme}",
        f"{said} {what}, by slices",
        (*TASK_LABELS, SUPPRESSION_LABEL),
        unit,
        level="debug",
    )
    for metric, what, unit in (
        ("count", "number of updates that a suppression holds back", ""),
        ("size", "bytes of the updates that a suppression holds back", "bytes"),
    )
    for extreme, said in (("avg", "Average"), ("max", "Largest"))
)
_UNCOMMITTED = define_figure(
    STATE_GROUP,
    "uncommitted-bytes",
    "About how many bytes the writes of the open transaction take",
    TASK_LABELS,
    "bytes",
    one_of=_KEY_VALUE,
)

STORE_OPERATION_DEFINITIONS = (*_TIMINGS, *_ITERATORS, *_BUFFERS, _UNCOMMITTED)
