"""Test the endpoint that answers Prometheus."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from coordinator.embedded import EmbeddedBroker
from coordinator.metrics.broker_figures import BrokerCollector
from tests.processes import HANG_LIMIT_S


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
