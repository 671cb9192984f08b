"""Test that `millrace` exports the public names, each the object that its package defines."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import assert_type

import pytest

import coordinator
import millrace
import streams
from millrace import App, serdes
from millrace.broker import EmbeddedBroker
from millrace.testing import TopologyTestDriver
from streams.dsl.stream import Stream

HOME = Path(__file__).parents[3]
SOURCES = [
    ("millrace", "streams"),
    ("millrace.testing", "streams.testing"),
    ("millrace.broker", "coordinator"),
    ("millrace.spark", "streams.spark"),
]


@pytest.mark.parametrize(("package", "source"), SOURCES)
def test_a_package_exports_all_names_of_its_source(package: str, source: str) -> None:
    names = importlib.import_module(source).__all__
    assert importlib.import_module(package).__all__ == names
    assert set(names) <= set(dir(importlib.import_module(package)))


@pytest.mark.parametrize(
    ("package", "source", "name"),
    [
        (package, source, name)
        for package, source in SOURCES
        for name in importlib.import_module(source).__all__
        if name != "MillraceDataSource"  # importing it needs pyspark
    ],
)
def test_a_name_is_the_same_object_in_both_packages(package: str, source: str, name: str) -> None:
    ours = getattr(importlib.import_module(package), name)
    assert ours is getattr(importlib.import_module(source), name)


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'millrace' has no attribute 'Apps'"):
        _ = millrace.Apps  # type: ignore[attr-defined]


def test_a_class_of_another_library_is_explained() -> None:
    with pytest.raises(ImportError, match="KafkaStreams"):
        from millrace import KafkaStreams  # type: ignore[attr-defined] # noqa: F401


def test_to_import_it_imports_no_clients_and_no_stores() -> None:
    program = "import sys, millrace; print({'confluent_kafka', 'rocksdict'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=HOME, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_its_names_have_types() -> None:
    """Test what mypy infers; mypy checks this file, and running it proves little."""
    stream = App("typed").stream("lines", key=serdes.string, value=serdes.int64)
    assert_type(stream, Stream[str, int])
    assert_type(EmbeddedBroker(), coordinator.EmbeddedBroker)
    assert_type(millrace.Windowed("k", 0, 1).key, str)
    assert TopologyTestDriver is streams.TopologyTestDriver
