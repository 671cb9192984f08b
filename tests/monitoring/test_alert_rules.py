"""Test with promtool that each fault fires its alerts and no others, and a healthy state none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.generate.alert_list import list_alerts
from ops.generate.files import ROOT
from tests.monitoring.prometheus import run_promtool
from tests.monitoring.rule_cases import CASES, RuleCase, list_series

RULES = ROOT / "ops" / "alerts.yml"


def write_test(case: RuleCase) -> dict[str, object]:
    """Return a case as a test of promtool, which counts the alerts that fire by their names."""
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(case.alerts)]
    return {
        "interval": case.interval,
        "input_series": [{"series": s, "values": v} for s, v in list_series(case).items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": case.at,
                "exp_samples": firing,
            }
        ],
    }


def run_case(case: RuleCase, directory: Path) -> None:
    path = directory / "test.yml"  # JSON is YAML
    tests = {"rule_files": [str(RULES)], "tests": [write_test(case)]}
    path.write_text(json.dumps(tests | {"evaluation_interval": case.interval}))
    run_promtool("test", "rules", path)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_fires_its_alerts_and_no_others(name: str, tmp_path: Path) -> None:
    run_case(CASES[name], tmp_path)


def test_each_alert_has_a_fault_that_fires_it() -> None:
    fired = set[str]().union(*(case.alerts for case in CASES.values()))
    assert {each.name for each in list_alerts()} - fired == set()


def test_an_alert_that_does_not_fire_is_found(tmp_path: Path) -> None:
    case = RuleCase({}, frozenset({"MillraceWorkerDown"}))
    with pytest.raises(AssertionError, match="MillraceWorkerDown"):
        run_case(case, tmp_path)


def test_the_rules_and_the_example_of_scraping_are_valid() -> None:
    run_promtool("check", "rules", RULES)
    run_promtool("check", "config", ROOT / "ops" / "prometheus.yml")
