"""Tests of figures, alerts and dashboards with a real Prometheus and its promtool."""
