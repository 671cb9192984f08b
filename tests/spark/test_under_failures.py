"""Test reconciliation under failures, in small; `make soak-reconcile` does it longer and faster."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from streams.spark import reconcile
from tests.brokers import SETTINGS, EmbeddedProcess
from tests.processes import wait_until
from tests.sampling import chosen_sample, draw_sample
from tests.spark_soak import planted
from tests.spark_soak.checks import read_at, wrong
from tests.spark_soak.fire import Fire
from tests.spark_soak.topology import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 8
RATE = 400
"""Records a second: they come as long as reconciliations take, and each is reconciled again."""


def test_every_cut_balances_while_workers_are_killed_and_a_planted_error_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        broker = EmbeddedProcess(SETTINGS)
        stack.callback(broker.close)
        broker.start()
        fire = Fire(stack, broker.bootstrap_servers, tmp_path, workers=2, rate=RATE, seed=SEED)
        fire.kill_every(3.0)
        read = []
        for cut in fire.cuts(3 if chosen_sample() is None else 2, every_s=3.0):
            with reconcile(spark, app, cut=cut) as report:
                assert wrong(report) == []
            read.append(read_at(cut))
        assert read == sorted(set(read)), "it stood still"
        wait_until(lambda: fire.kills >= 3, what="three kills")
        fire.cease()
        for plant in draw_sample("planted", planted.ALL, 1):
            error = plant(fire)
            with reconcile(spark, app) as report:
                assert error.is_named(report), report.summary()
