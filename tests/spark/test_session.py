"""Test the session that commands use, and Spark's errors as one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader

from streams.errors import AuthorizationError, ConfigError, StreamsError
from streams.spark.environment import check_environment
from streams.spark.session import session, translate_spark_errors

pytestmark = pytest.mark.sampled(2, by="test")


MISTAKES = {
    "driver": ConfigError("option x: 'y' is no number"),
    "worker": ConfigError("topic t: gone\nsince yesterday"),
    "worker without a right": AuthorizationError("Read", "topic", "lines"),
}


class Failing(DataSource):
    """Reports a user's mistake where its option says."""

    @classmethod
    def name(cls) -> str:
        return "failing"

    def schema(self) -> str:
        if self.options["where"] == "driver":
            raise MISTAKES["driver"]
        return "a int"

    def reader(self, schema: Any) -> DataSourceReader:
        return FailingReader(MISTAKES[self.options["where"]])


class FailingReader(DataSourceReader):
    def __init__(self, mistake: Exception) -> None:
        self._mistake = mistake

    def read(self, partition: Any) -> Iterator[tuple[int]]:
        yield (1,)
        raise self._mistake


@pytest.mark.parametrize("where", MISTAKES)
def test_a_mistake_told_inside_of_spark_is_the_same_outside(
    spark: SparkSession, where: str
) -> None:
    spark.dataSource.register(Failing)
    with pytest.raises(ConfigError) as told, translate_spark_errors():
        spark.read.format("failing").option("where", where).load().collect()
    assert type(told.value) is type(MISTAKES[where])
    assert vars(told.value) == vars(MISTAKES[where])
    assert str(told.value) == str(MISTAKES[where])


def test_an_error_of_spark_is_told_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(StreamsError) as told, translate_spark_errors():
        spark.read.parquet("/no/such/place")
    assert str(told.value).startswith("Spark: ")
    assert "PATH_NOT_FOUND" in str(told.value)
    assert "\n" not in str(told.value)


def test_a_session_that_is_there_is_taken_and_left_running(spark: SparkSession) -> None:
    with session() as taken:
        assert taken is spark
    assert spark.range(3).count() == 3


def test_the_interpreter_of_the_workers_is_checked(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_environment(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "no-such-python")
    with pytest.raises(ConfigError, match="no-such-python"):
        check_environment(spark)


_COMMAND = """
from pyspark.sql.functions import udf
from streams.spark.session import session
import mine
with session("local[1]", settings={"spark.ui.showConsoleProgress": "false"}) as spark:
    print(spark.range(1).select(udf(mine.answer, useArrow=False)("id")).first()[0])
    print(spark.conf.get("spark.sql.session.timeZone"))
    print(spark.sparkContext.uiWebUrl)
    print(spark.conf.get("spark.driver.host"))
print(spark.sparkContext._jsc)
"""


def test_a_session_of_its_own_is_quiet_and_local_and_workers_find_the_user_s_modules(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text("def answer(number): return f'mine: {number}'\n")
    tree = str(Path(__file__).parents[2])
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, '')\n{_COMMAND}"],
        cwd=tmp_path,
        env={**environ, "PYTHONPATH": tree},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split("\n")[:-1] == ["mine: 0", "UTC", "None", "127.0.0.1", "None"], done
    # Java's own word about its modules is printed before Spark can be quiet.
    lines = [line for line in done.stderr.splitlines() if "incubator modules" not in line]
    assert lines == []
    left_behind = {"spark-warehouse", "metastore_db", "derby.log", "artifacts"}
    assert left_behind.isdisjoint(os.listdir(tmp_path))


_BRIEF = """
import gc
import sys
from pyspark.sql.functions import udf
from streams.spark.session import session

def describe(number):
    frozen = gc.get_freeze_count() > 10_000
    return f"{'streams.app' in sys.modules} {frozen}"

with session("local[1]", runs_briefly=True) as spark:
    print(spark.range(1).select(udf(describe, useArrow=False)("id")).first()[0])
"""


def test_workers_of_a_brief_run_are_forked_with_what_they_will_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BRIEF],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "True True\n", done
