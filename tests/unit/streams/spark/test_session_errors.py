"""Test which line of an error of Spark's a person is told."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException

from streams.errors import StreamsError
from streams.spark.session import to_user_error

WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/app/shop.py", line 3, in price
    return prices[key]
KeyError: 'b'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/shop.py", line 5, in price
    raise ValueError("no price")
ValueError: no price

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""

NOT_STARTED = """org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "<frozen runpy>", line 198, in _run_module_as_main
    File "/app/queue.py", line 1, in <module>
      raise RuntimeError("mine")
  RuntimeError: mine
PYTHONPATH was:
  /app:/spark/python
org.apache.spark.SparkException: EOFException occurred while reading the port number
"""
NOT_FOUND = """Error from python worker:
  /usr/bin/python3: Error while finding module specification for 'streams.spark.python_daemon'
PYTHONPATH was:
  /app
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (WORKER, "Spark: a Python worker has failed: ValueError: no price (/app/shop.py:5)"),
        (
            NOT_STARTED,
            "Spark: a Python worker has failed: RuntimeError: mine (/app/queue.py:1)",
        ),
        (
            NOT_FOUND,
            f"Spark: a Python worker did not start: {NOT_FOUND.splitlines()[1].strip()}",
        ),
        ("Job aborted.\n\tat somewhere", "Spark: Job aborted."),
    ],
)
def test_the_line_that_says_what_went_wrong_is_told(said: str, told: str) -> None:
    error = to_user_error(PythonException(said))
    assert isinstance(error, StreamsError)
    assert str(error) == told
