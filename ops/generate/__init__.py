"""Generate the alert rules, dashboards and pages of figures from what the code defines.

`python -m ops.generate` writes `ops/alerts.yml`, `ops/dashboards/`, `docs/alerts.md` and
`docs/metrics.md`. A test holds the files equal to what is generated, and every figure that a query
names to a definition. Start reading at `alerts`.
"""
