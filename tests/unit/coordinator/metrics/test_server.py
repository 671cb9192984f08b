"""Test the text of figures against prometheus_client's own, byte for byte."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from coordinator.embedded import EmbeddedBroker
from coordinator.metrics.broker_figures import BrokerCollector
from coordinator.metrics.text_format import render_text
from tests.processes import HANG_LIMIT_S

TEXTS = st.text(st.sampled_from("ab{},= \"\\\n'é"), max_size=6)
VALUES = st.one_of(st.floats(), st.integers(-(10**12), 10**12), st.just(math.inf))
LABELS = ("topic", "api")


class Given(Collector):
    """Collects families that are given."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def render_with_prometheus_client(families: Iterable[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given(families))
    return generate_latest(registry)


@given(TEXTS, st.lists(st.tuples(TEXTS, TEXTS, VALUES), max_size=4))
def test_a_text_is_that_of_prometheus_client(
    help_text: str, samples: list[tuple[str, str, float]]
) -> None:
    families = (
        CounterMetricFamily("m_counted", help_text, labels=LABELS),
        GaugeMetricFamily("m_now", help_text, labels=LABELS),
        SummaryMetricFamily("m_summed", help_text, labels=LABELS),
        HistogramMetricFamily("m_spread", help_text, labels=LABELS),
    )
    counter, gauge, summary, histogram = families
    for first, second, value in samples:
        labels = first, second
        counter.add_metric(labels, value)
        gauge.add_metric(labels, value)
        summary.add_metric(labels, 3, value)
        histogram.add_metric(labels, [("0.001", 1), ("+Inf", 2)], value)
    plain = GaugeMetricFamily("m_plain", help_text, value=1.5)
    assert render_text([*families, plain]) == render_with_prometheus_client([*families, plain])


def test_a_scraper_that_reads_gzip_gets_the_same_figures_compressed(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path, settings={"metrics.port": 0}) as measured:
        names = []
        for codings in ("deflate;q=0.5, gzip;q=0.8", "identity", "gzip;q=0", "GZIP; q=0.00"):
            is_compressed = codings.startswith("deflate")
            request = Request(measured.metrics_url, headers={"Accept-Encoding": codings})
            with urlopen(request, timeout=HANG_LIMIT_S) as answer:
                body = answer.read()
                assert (answer.headers["Content-Encoding"] == "gzip") == is_compressed
            text = gzip.decompress(body) if is_compressed else body
            families = text_string_to_metric_families(text.decode())
            names.append({family.name for family in families})
    assert all(each == names[0] for each in names)
    assert "millrace_event_loop_busy_seconds" in names[0]


def test_figures_that_can_not_be_collected_are_an_error_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: BrokerCollector) -> Iterable[Metric]:
        raise RuntimeError("dictionary changed size during iteration")

    with EmbeddedBroker(tmp_path, settings={"metrics.port": 0}) as measured:
        with monkeypatch.context() as patched:
            patched.setattr(BrokerCollector, "collect", fail)
            with pytest.raises(HTTPError) as refused:
                urlopen(measured.metrics_url, timeout=HANG_LIMIT_S)
            refused.value.close()
        assert refused.value.code == 500
        with urlopen(measured.metrics_url, timeout=HANG_LIMIT_S) as answer:
            assert answer.status == 200
    assert "dictionary changed size" in caplog.text
