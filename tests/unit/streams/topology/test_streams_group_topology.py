"""Test which differences of two versions a streams group refuses, and what `millrace plan` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streams import App, serdes, topics
from streams.commands.root import cli
from streams.runtime.assigning.topology_to_send import describe_sent_settings
from streams.topology.description import (
    TopologyDescription,
    describe_topology,
    description_from_json,
    description_to_json,
)
from streams.topology.streams_group_topology import find_sent_differences

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


def version(describe: Callable[[App], object]) -> TopologyDescription:
    app = App("a")
    describe(app)
    return describe_topology(app.topology())


def count(app: App, *stores: str, above: str = "", behind: str = "") -> None:
    """Count lines in stores; copy `above` by steps before them, and `behind` by later ones."""
    if above:
        app.stream(above, **TEXT).to("out")
    grouped = app.stream("lines", **TEXT).group_by(lambda k, v: v, key=serdes.string)
    for store in stores:
        grouped.count(store=store)
    if behind:
        app.stream(behind, **TEXT).to("out")


ONE = version(lambda app: count(app, "x"))


@pytest.mark.parametrize(
    ("describe", "said"),
    [
        (lambda app: count(app, "x"), []),
        (lambda app: count(app, "x", "y"), ["changelog 'a-y-changelog' is of the new version"]),
        (
            lambda app: count(app, "x", behind="more"),
            ["input 'more' is of the new version only"],
        ),
        (
            lambda app: count(app, "x", above="more"),
            ["is in sub-topology 0 of the old version, and in 1 of the new version"],
        ),
    ],
)
def test_a_streams_group_refuses_other_topics_and_other_numbers(
    describe: Callable[[App], object], said: list[str]
) -> None:
    found = find_sent_differences(ONE, version(describe))
    assert bool(found) == bool(said)
    for each in said:
        assert each in "\n".join(found)


def test_settings_of_the_application_are_compared_where_both_versions_are_saved_with_them() -> None:
    def save(**settings: Any) -> TopologyDescription:
        app = App("a", **settings)
        count(app, "x")
        sent = describe_sent_settings(app.topology(), app.config)
        return replace(describe_topology(app.topology()), sent_settings=sent)

    kept = save(cut_retention_ms=5_000, replication_factor=3)
    found = find_sent_differences(save(), kept)
    assert "changelog 'a-x-changelog' has replication factor the brokers' default of" in found[1]
    assert found[0] == (
        "changelog 'a-x-changelog' has min.compaction.lag.ms unset of the old version, "
        "and 5000 of the new version"
    )
    assert find_sent_differences(kept, kept) == ()
    assert find_sent_differences(ONE, kept) == ()
    assert description_from_json(description_to_json(kept), "saved") == kept


def test_steps_and_outputs_are_not_sent() -> None:
    def describe(app: App) -> None:
        grouped = app.stream("lines", **TEXT).group_by(lambda k, v: v, key=serdes.string)
        grouped.count(store="x").to_stream().map_values(str, value=serdes.string).to("out")

    assert find_sent_differences(ONE, version(describe)) == ()


def test_a_topology_with_a_pattern_is_in_no_streams_group() -> None:
    described = version(lambda app: app.stream(topics.matching("lines-.*"), **TEXT).to("out"))
    assert find_sent_differences(ONE, described) == ()


@pytest.mark.parametrize(
    ("protocol", "line"),
    [
        ("classic", "side by side: yes; workers may be restarted one after the other"),
        ("streams", "side by side: no; a group of the streams protocol keeps its topology"),
        ("auto", "side by side: no (unless it is a classic group); a group of the streams"),
    ],
)
def test_plan_says_how_a_streams_group_gets_another_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, line: str
) -> None:
    app = App("planned")
    count(app, "x")
    saved, module = tmp_path / "saved.json", f"planned_{protocol}"
    saved.write_text(app.describe(format="json"))
    (tmp_path / f"{module}.py").write_text(
        "from streams import App, serdes\n"
        f"app = App('planned', group_protocol={protocol!r})\n"
        "lines = app.stream('lines', key=serdes.string, value=serdes.string)\n"
        "grouped = lines.group_by(lambda k, v: v, key=serdes.string)\n"
        "grouped.count(store='x')\n"
        "grouped.count(store='y')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    arguments = ["plan", f"{module}:app", "--against", str(saved), "--rolling"]
    result = CliRunner().invoke(cli, arguments)
    assert line in result.output
    assert result.exit_code == (0 if protocol == "classic" else 3)
    if protocol != "classic":
        assert "changelog 'planned-y-changelog' is of the new version only" in result.output
        assert "group_protocol='classic', which keeps the offsets" in result.output
