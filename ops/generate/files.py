"""List the generated files with their texts."""

from __future__ import annotations

from pathlib import Path

from ops.generate.dashboard_list import list_dashboards
from ops.generate.dashboards import render_dashboard
from ops.generate.figures_page import FIGURES_PAGE, render_figures_page
from ops.generate.rules import PAGE, render_alerts_page, render_rules

ROOT = Path(__file__).parents[2]


def render_files() -> dict[str, str]:
    """Return the text of each generated file by its path in the repository."""
    dashboards = {
        f"ops/dashboards/{each.name}.json": render_dashboard(each) for each in list_dashboards()
    }
    pages = {PAGE: render_alerts_page(), FIGURES_PAGE: render_figures_page()}
    return {"ops/alerts.yml": render_rules(), **pages, **dashboards}
