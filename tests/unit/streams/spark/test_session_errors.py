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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (WORKER, "Spark: a Python worker has failed: ValueError: no price"),
        ("Job aborted.\n\tat somewhere", "Spark: Job aborted."),
    ],
)
def test_the_line_that_says_what_went_wrong_is_told(said: str, told: str) -> None:
    error = to_user_error(PythonException(said))
    assert isinstance(error, StreamsError)
    assert str(error) == told
