"""Start Spark's Python workers with Millrace imported: a module for `spark.python.daemon.module`.

Spark's daemon forks a worker for each task and each Python function of it that runs at the same
time. What the daemon has imported every worker has, where it would take half a second in each. And
Spark collects garbage after each task: what was there before the fork is left out, which is nearly
all that a collection would look at.
"""

from __future__ import annotations

import gc

import pyarrow.compute  # noqa: F401
from pyspark import daemon

import streams.app
import streams.spark.reconciliation.derivation.plan
import streams.spark.reconciliation.planned_reads
import streams.spark.reconciliation.serde_columns  # noqa: F401
from streams.spark.application_path import add_application_path

if __name__ == "__main__":
    add_application_path()
    gc.collect()
    gc.freeze()
    daemon.manager()
