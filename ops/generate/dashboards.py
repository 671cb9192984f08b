"""Define a dashboard and its panels, and render them as the JSON that Grafana imports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

_WIDTH, _HEIGHT, _PANELS_IN_A_ROW = 12, 8, 2
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Describes one panel: its queries by their legends, and the unit by Grafana's name.

    `needs` says when it has data, where a healthy application that processes records has none.
    """

    title: str
    queries: dict[str, str]
    unit: str = "short"
    needs: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Describes one dashboard; `variables` are labels to choose by, with a figure of each."""

    name: str
    title: str
    variables: dict[str, str]
    panels: tuple[Panel, ...]


def render_dashboard(dashboard: Dashboard) -> str:
    """Return a dashboard as JSON that Grafana imports."""
    panels = [_render_panel(panel, number) for number, panel in enumerate(dashboard.panels)]
    body = {
        "uid": f"millrace-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["millrace"],
        "editable": True,
        "schemaVersion": 38,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_DATASOURCE_VARIABLE, *_render_variables(dashboard)]},
        "panels": panels,
    }
    return json.dumps(body, indent=2) + "\n"


_DATASOURCE_VARIABLE = {"name": "datasource", "type": "datasource", "query": "prometheus"}


def _render_variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    return [
        {
            "name": label,
            "type": "query",
            "datasource": _DATASOURCE,
            "query": f"label_values({figure}, {label})",
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
        }
        for label, figure in dashboard.variables.items()
    ]


def _render_panel(panel: Panel, number: int) -> dict[str, Any]:
    row, column = divmod(number, _PANELS_IN_A_ROW)
    notes = [panel.description, f"Has data {panel.needs}." if panel.needs else ""]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": " ".join(filter(None, notes)),
        "datasource": _DATASOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend}
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }
