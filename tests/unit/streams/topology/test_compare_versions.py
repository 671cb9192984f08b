"""Test the comparison of two versions of an application: what the new one makes of old state."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples.word_count import app as word_count
from streams import App, Processor, Store, serdes
from streams.commands.plan_printing import print_plan
from streams.commands.root import cli
from streams.topology.compare_versions import StateChange, UpgradePlan, compare_topologies
from streams.topology.description import (
    DescribedStore,
    TopologyDescription,
    describe_topology,
    description_from_json,
    description_to_json,
)
from streams.topology.state_effects import StateEffect, StateOutcome

TEXT: dict[str, Any] = {"key": serdes.string, "value": serdes.string}


class Using(Processor):
    """Declares the stores that it is given, and does nothing with them."""


def version(describe: Callable[[App], object]) -> TopologyDescription:
    app = App("a")
    describe(app)
    return describe_topology(app.topology())


def words(app: App) -> Any:
    return app.stream("lines", **TEXT).flat_map_values(str.split)


def counted(store: Any = None, *steps: str) -> TopologyDescription:
    """Describe a topology that counts words after `steps` that change nothing."""

    def describe(app: App) -> None:
        stream = words(app)
        for step in steps:
            stream = getattr(stream, step)(lambda k, v: True)
        stream.group_by(lambda _, word: word, key=serdes.string).count(store=store)

    return version(describe)


def kept(store: Store) -> TopologyDescription:
    """Describe a topology of a processor with one store."""
    return version(lambda app: app.stream("lines", **TEXT).process(Using, stores=[store]))


def stored(**how: Any) -> TopologyDescription:
    return kept(Store.persistent("s", **TEXT, **how))


def windows(**how: Any) -> TopologyDescription:
    return kept(Store.window("s", **{"size": 10, "retention": 600_000, **TEXT, **how}))


def change_of(plan: UpgradePlan, name: str, kind: str = "store") -> StateChange:
    (found,) = [each for each in plan.changes if (each.kind, each.name) == (kind, name)]
    return found


def the_effect(plan: UpgradePlan, name: str = "s", kind: str = "store") -> StateEffect:
    (effect,) = change_of(plan, name, kind).effects
    return effect


def test_nothing_changes_between_equal_versions() -> None:
    plan = compare_topologies(counted("counts"), counted("counts"))
    assert plan.changes == ()
    assert plan.unchanged_count == 3  # the store, its changelog, the repartition topic
    assert not plan.loses_state


def test_a_step_between_named_ones_changes_nothing() -> None:
    assert compare_topologies(counted("counts"), counted("counts", "filter", "peek")).changes == ()


def test_a_store_that_vanishes_is_lost_and_its_changelog_is_left_behind() -> None:
    plan = compare_topologies(counted("counts"), version(lambda app: words(app).to("out")))
    assert the_effect(plan, "counts").outcome is StateOutcome.LOST
    assert "nobody reads its changelog 'a-counts-changelog'" in the_effect(plan, "counts").reason
    assert "store='counts'" in the_effect(plan, "counts").remedy
    assert the_effect(plan, "a-counts-changelog", "changelog").difference == "is left behind"
    topic = the_effect(plan, "a-counts-repartition", "repartition topic")
    assert topic.outcome is StateOutcome.LOST
    assert "never read" in topic.reason
    assert plan.loses_state


def test_a_store_that_appears_loses_nothing() -> None:
    plan = compare_topologies(
        version(lambda app: words(app).to("out")), counted("counts"), {"lines": 4}
    )
    assert not plan.loses_state
    assert {change.worst_outcome for change in plan.changes} == {StateOutcome.NEW}
    topic = the_effect(plan, "a-counts-repartition", "repartition topic")
    assert topic.difference == "appears (4 partitions)"


def test_a_renamed_store_is_recognised() -> None:
    effect = the_effect(compare_topologies(counted("counts"), counted("tally")), "counts")
    assert effect.difference == "vanishes; it looks renamed to 'tally'"
    assert effect.remedy == "to keep what there is, say store='counts'"


def test_of_several_new_stores_the_nearest_name_is_taken_for_the_renamed_one() -> None:
    old = kept(Store.persistent("orders-by-city", **TEXT))
    stores = [Store.persistent(name, **TEXT) for name in ("visits", "orders-by-town")]
    new = version(lambda app: app.stream("lines", **TEXT).process(Using, stores=stores))
    effect = the_effect(compare_topologies(old, new), "orders-by-city")
    assert effect.difference == "vanishes; it looks renamed to 'orders-by-town'"


def test_a_generated_name_that_shifted_is_recognised_with_the_remedy() -> None:
    old, new = counted(None), counted(None, "filter")
    (was,), (now,) = (
        [store.name for sub in each.subtopologies for store in sub.stores] for each in (old, new)
    )
    plan = compare_topologies(old, new)
    effect = the_effect(plan, was)
    assert effect.difference == f"vanishes; it looks renamed to {now!r}"
    assert effect.outcome is StateOutcome.LOST
    assert effect.remedy == (
        "name the store with store='...': generated names shift when a step is added above; to "
        f"keep what there is, say store={was!r}"
    )
    assert f"renamed to 'a-{now}-repartition'" in (
        the_effect(plan, f"a-{was}-repartition", "repartition topic").difference
    )
    # One remedy suffices: giving the old name keeps everything.
    assert compare_topologies(old, counted(was, "filter")).changes == ()


def test_a_store_that_no_store_names_is_named_by_its_step() -> None:
    def joined(*steps: str) -> TopologyDescription:
        def describe(app: App) -> None:
            stream = words(app)
            for step in steps:
                stream = getattr(stream, step)(lambda k, v: True)
            stream.join(app.stream("more", **TEXT), lambda a, b: a, within=5).to("out", **TEXT)

        return version(describe)

    plan = compare_topologies(joined(), joined("filter"))
    lost = [each for each in plan.changes if each.worst_outcome is StateOutcome.LOST]
    assert len(lost) == 2
    for change in lost:
        assert "looks renamed to 'KSTREAM-JOIN" in change.effects[0].difference
        assert change.effects[0].remedy.startswith("name the step with name='...'")


def test_a_generated_name_that_another_step_has_got_would_mix_states_up() -> None:
    def one(app: App) -> None:
        app.stream("lines", **TEXT).group_by_key().count()

    def another_before(app: App) -> None:
        app.stream("clicks", **TEXT).group_by_key().count()
        one(app)

    plan = compare_topologies(version(one), version(another_before))
    (was,) = [change.name for change in plan.changes if change.worst_outcome is StateOutcome.LOST]
    effect = the_effect(plan, was)
    assert effect.difference.startswith("another step has got this generated name; the one that")
    assert effect.reason.startswith("it was of lines > KSTREAM-SOURCE > ")
    assert "name the store" in effect.remedy


def test_a_given_name_may_get_other_inputs() -> None:
    def reading(topic: str) -> TopologyDescription:
        return version(lambda app: app.stream(topic, **TEXT).group_by_key().count(store="s"))

    effect = the_effect(compare_topologies(reading("clicks"), reading("clicks-v2")))
    assert (effect.difference, effect.outcome) == ("inputs: -clicks, +clicks-v2", StateOutcome.KEPT)


MEMORY = {"logged": False}


@pytest.mark.parametrize(
    ("old", "new", "difference", "fate"),
    [
        (stored(caching=False), kept(Store.versioned("s", **TEXT, history=9)),
         "kind: key-value -> versioned", "lost"),
        (stored(), kept(Store.persistent("s", key=serdes.int64, value=serdes.string)),
         "key serde: string -> int64", "lost"),
        (stored(), kept(Store.persistent("s", key=serdes.string, value=serdes.json)),
         "value serde: string -> json", "lost"),
        (windows(), windows(size=20), "window size: 10 ms -> 20 ms", "lost"),
        (windows(retain_duplicates=True), windows(retain_duplicates=True, size=20),
         "window size: 10 ms -> 20 ms", "kept"),
        (windows(), windows(retention=60_000), "retention: 600000 ms -> 60000 ms", "kept"),
        (windows(), windows(retention=60_000),
         "segments on disk: 300000 ms -> 60000 ms", "restored"),
        (windows(logged=False), windows(logged=False, retention=9_000_000),
         "segments on disk: 300000 ms -> 4500000 ms", "lost"),
        (windows(persistent=False), windows(persistent=False, retention=60_000),
         "retention: 600000 ms -> 60000 ms", "kept"),
        (kept(Store.versioned("s", **TEXT, history=9)),
         kept(Store.versioned("s", **TEXT, history=5)), "history: 9 ms -> 5 ms", "kept"),
        (stored(), stored(ttl=5), "ttl: none -> 5 ms", "kept"),
        (stored(), kept(Store.in_memory("s", **TEXT)), "on disk -> in memory", "restored"),
        (kept(Store.in_memory("s", **TEXT)), stored(), "in memory -> on disk", "restored"),
        (stored(logged=False), kept(Store.in_memory("s", **TEXT, logged=False)),
         "on disk -> in memory", "lost"),
        (stored(), stored(logged=False), "changelog: a-s-changelog -> none", "kept"),
        (stored(logged=False), stored(), "changelog: none -> a-s-changelog", "lost"),
        (kept(Store.in_memory("s", **TEXT)), kept(Store.in_memory("s", **TEXT, logged=False)),
         "changelog: a-s-changelog -> none", "lost"),
        (stored(), stored(caching=False), "caching: on -> off", "kept"),
        (stored(), stored(logged={"segment.ms": 1}),
         "settings of its changelog: none -> segment.ms=1", "kept"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_store_whose_declaration_changes(
    old: TopologyDescription, new: TopologyDescription, difference: str, fate: str
) -> None:
    effects = change_of(compare_topologies(old, new), "s").effects
    (effect,) = [each for each in effects if each.difference.startswith(difference)]
    assert effect.outcome == fate


def after_another(store: Store) -> TopologyDescription:
    def describe(app: App) -> None:
        app.stream("first", **TEXT).to("out")
        app.stream("lines", **TEXT).process(Using, stores=[store])

    return version(describe)


STORES = [
    (Store.persistent("s", **TEXT), StateOutcome.RESTORED),
    (Store.in_memory("s", **TEXT), StateOutcome.KEPT),
    (Store.persistent("s", **TEXT, logged=False), StateOutcome.LOST),
]


@pytest.mark.parametrize(("store", "fate"), STORES)
def test_a_sub_topology_with_another_number_keeps_its_directories(
    store: Store, fate: StateOutcome
) -> None:
    assert compare_topologies(kept(store), after_another(store)).changes == ()


@pytest.mark.parametrize(("store", "fate"), STORES)
def test_a_store_that_is_taken_out_of_a_sub_topology_has_other_directories(
    store: Store, fate: StateOutcome
) -> None:
    other = Store.persistent("a", **TEXT)

    def together(app: App) -> None:
        app.stream("lines", **TEXT).process(Using, stores=[store, other])

    def apart(app: App) -> None:
        app.stream("lines", **TEXT).process(Using, stores=[other])
        app.stream("more", **TEXT).process(Using, stores=[store])

    effects = change_of(compare_topologies(version(together), version(apart)), "s").effects
    (effect,) = [each for each in effects if each.difference.startswith("directories")]
    assert (effect.difference, effect.outcome) == ("directories: 0_* -> 1_*", fate)


def swapped(*topics: str) -> TopologyDescription:
    """Describe a topology that counts each topic in a store of its own, in this order."""

    def describe(app: App) -> None:
        for topic in topics:
            app.stream(topic, **TEXT).group_by_key().count(store=f"of-{topic}")

    return version(describe)


def test_sub_topologies_in_another_order_may_run_side_by_side() -> None:
    plan = compare_topologies(swapped("a", "b"), swapped("b", "a"))
    assert (plan.changes, plan.conflicts) == ((), ())


def test_versions_that_read_a_topic_into_other_stores_may_not_run_side_by_side() -> None:
    plan = compare_topologies(swapped("lines"), counted("by-word"))
    (why,) = plan.conflicts
    assert "'lines' has the stores 'of-lines' in the old version, and nothing in the new" in why


def test_a_version_with_more_stores_may_run_beside_the_other() -> None:
    fewer = version(lambda app: words(app).to("out"))
    for plan in (
        compare_topologies(fewer, swapped("lines")),
        compare_topologies(swapped("lines"), fewer),
    ):
        assert plan.conflicts == ()


def test_what_was_in_memory_alone_can_not_be_lost() -> None:
    old = kept(Store.in_memory("s", **TEXT, logged=False))
    assert (
        the_effect(compare_topologies(old, version(lambda app: words(app).to("out")))).outcome
        is StateOutcome.KEPT
    )


def with_changelog(description: TopologyDescription, topic: str) -> TopologyDescription:
    """Return the description with its store's source topic as changelog, as if optimised."""
    (sub,) = description.subtopologies
    (store,) = sub.stores
    optimised = replace(store, changelog=topic, source_is_changelog=True)
    return replace(description, subtopologies=(replace(sub, stores=(optimised,)),))


def test_a_source_that_becomes_the_changelog_loses_nothing_and_the_way_back_does() -> None:
    own, source = stored(), with_changelog(stored(), "lines")
    assert the_effect(compare_topologies(own, source)).outcome is StateOutcome.RESTORED
    assert the_effect(compare_topologies(source, own)).outcome is StateOutcome.LOST
    assert (
        the_effect(compare_topologies(source, with_changelog(stored(), "rows"))).outcome
        is StateOutcome.RESTORED
    )
    gone = compare_topologies(source, version(lambda app: words(app).to("out")))
    assert the_effect(gone).outcome is StateOutcome.KEPT


def with_rates(topic: str | None) -> TopologyDescription:
    def describe(app: App) -> None:
        words(app).to("out")
        if topic is not None:
            app.global_table(topic, **TEXT, store="s")

    return version(describe)


def test_a_global_table_is_read_from_its_topic_and_never_lost() -> None:
    (_, rates) = with_rates("rates").subtopologies
    (store,) = rates.stores
    assert (rates.is_global, store.changelog, store.source_is_changelog) == (True, "rates", True)
    assert (
        the_effect(compare_topologies(with_rates(None), with_rates("rates"))).outcome
        is StateOutcome.NEW
    )
    assert (
        the_effect(compare_topologies(with_rates("rates"), with_rates(None))).outcome
        is StateOutcome.KEPT
    )
    effect = the_effect(compare_topologies(with_rates("rates"), with_rates("rates-v2")))
    assert (effect.difference, effect.outcome) == (
        "source: rates -> rates-v2",
        StateOutcome.RESTORED,
    )


def test_a_change_of_the_inputs_partitions_is_refused_at_the_start() -> None:
    old = replace(counted("counts"), partitions={"lines": 4})
    plan = compare_topologies(old, counted("counts"), {"lines": 8})
    for name, kind in (("counts", "store"), ("a-counts-repartition", "repartition topic")):
        effect = the_effect(plan, name, kind)
        assert (effect.difference, effect.outcome) == ("partitions: 4 -> 8", StateOutcome.LOST)
        assert "refuses to start" in effect.reason
    assert plan.inputs_without_counts == ()


def test_what_a_broker_has_goes_before_what_would_follow() -> None:
    plan = compare_topologies(
        counted("counts"), counted("counts"), {"lines": 8, "a-counts-changelog": 4}
    )
    assert the_effect(plan, "counts").difference == "partitions: 4 -> 8"


def test_counts_that_are_not_known_are_said_to_be_missing() -> None:
    assert compare_topologies(counted("counts"), counted("counts")).inputs_without_counts == (
        "lines",
    )
    assert (
        compare_topologies(counted("counts"), counted("counts"), {"lines": 4}).inputs_without_counts
        == ()
    )
    assert (
        compare_topologies(stored(logged=False), stored(logged=False)).inputs_without_counts == ()
    )


def test_the_serdes_of_a_repartition_topic_matter_for_what_is_in_it() -> None:
    def sums(value: Any) -> TopologyDescription:
        return version(
            lambda app: (
                app.stream("lines", key=serdes.string, value=value)
                .group_by(lambda k, v: v, key=serdes.string)
                .count(store="s")
            )
        )

    plan = compare_topologies(sums(serdes.string), sums(serdes.json))
    effect = the_effect(plan, "a-s-repartition", "repartition topic")
    assert (effect.difference, effect.outcome) == ("value serde: string -> json", StateOutcome.LOST)


def test_a_description_comes_back_from_json_as_it_was() -> None:
    old = replace(windows(retention=60_000), partitions={"lines": 4})
    assert description_from_json(description_to_json(old), "here") == old
    (store,) = old.subtopologies[0].stores
    assert isinstance(store, DescribedStore)


# The command.


def run(*arguments: object) -> tuple[int, str]:
    """Run `millrace plan` for the word count; return its exit status and output."""
    result = CliRunner().invoke(cli, ["plan", "examples.word_count:app", *map(str, arguments)])
    return result.exit_code, result.output


def saved_word_count(path: Path, store: str = "counts") -> Path:
    app = App("word-count")
    words(app).group_by(lambda _, word: word, key=serdes.string).count(store=store)
    path.write_text(app.describe(format="json"))
    return path


def test_plan_saves_and_compares(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    assert run("--save", saved, "--partitions", "lines=4") == (0, "")
    assert description_from_json(saved.read_bytes(), "it").partitions == {"lines": 4}
    status, said = run("--against", saved, "--partitions", "lines=4")
    assert status == 0
    assert said == (
        "nothing changes for state: 3 stores and internal topics are as before\n"
        "side by side: yes; workers may be restarted one after the other\n"
    )
    status, said = run("--against", saved, "--partitions", "lines=8")
    assert status == 1
    assert "lost: store counts\n  partitions: 4 -> 8\n" in said


def test_plan_says_what_is_lost_and_ends_with_status_1(tmp_path: Path) -> None:
    status, said = run("--against", saved_word_count(tmp_path / "saved.json", store="tally"))
    assert status == 1
    lines, changelog = said.splitlines(), "word-count-tally-changelog"
    assert lines[:4] == [
        "lost: store tally",
        "  vanishes; it looks renamed to 'counts'",
        f"    'counts' begins empty, and nobody reads its changelog {changelog!r} any more",
        "    remedy: to keep what there is, say store='tally'",
    ]
    assert "2 lost, 1 kept, 3 new, 0 as before" in lines
    assert (
        "side by side: no; a worker of the new version is refused while the old one runs" in lines
    )


def test_plan_heeds_a_file_of_settings(tmp_path: Path) -> None:
    settings = tmp_path / "millrace.toml"
    settings.write_text('topology_optimization = "fast"\n')
    status, said = run("--config", settings, "--save", tmp_path / "saved.json")
    assert (status, "topology_optimization" in said) == (2, True)


def test_plan_without_counts_says_which_would_be_needed(tmp_path: Path) -> None:
    status, said = run("--against", saved_word_count(tmp_path / "saved.json"))
    assert status == 0
    assert "--partitions lines=4" in said


def test_a_terminal_gets_a_table() -> None:
    out = io.StringIO()
    plan = compare_topologies(counted("counts"), counted("tally"), {"lines": 4})
    print_plan(plan, Console(file=out, force_terminal=True, width=120, color_system=None))
    assert "│ lost" in out.getvalue()
    assert "renamed to 'tally'" in out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be read (No such file or directory)"),
        ("not json", "is no description of a topology"),
        ("[1]", "is no description of a topology"),
        ('{"format": 1}', "is no description of a topology (application_id: Field required)"),
        ('{"format": 2, "else": 1}', "has format 2, and this version of millrace reads 1"),
        (
            description_to_json(counted("counts")),
            "describes the application 'a', and this one is 'word-count'",
        ),
    ],
)
def test_a_file_that_can_not_be_compared_with_is_refused_with_one_message(
    content: str | None, message: str, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.json"
    if content is not None:
        saved.write_text(content)
    status, said = run("--against", saved)
    assert status == 2
    assert message in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "plan needs --against FILE to compare with, --save FILE to write, or --bootstrap"),
        (["--save", "x", "--partitions", "lines"], "--partitions 'lines' is not TOPIC=NUMBER"),
        (["--save", "x", "--partitions", "lines=0"], "is not TOPIC=NUMBER"),
        (["--save", "x", "--partitions", "lnes=4"], "did you mean 'lines'?"),
        (["--save", "/nowhere/x"], "'/nowhere/x' can't be written (No such file or directory)"),
    ],
)
def test_wrong_arguments_are_refused_with_one_message(arguments: list[str], message: str) -> None:
    status, said = run(*arguments)
    assert (status, len(said.splitlines())) == (2, 1)
    assert message in said


def test_the_topic_of_a_global_table_is_known(tmp_path: Path) -> None:
    arguments = ["plan", "examples.top_ten:app", "--save", str(tmp_path / "saved.json")]
    known = CliRunner().invoke(cli, [*arguments, "--partitions", "songs=4"])
    assert (known.exit_code, known.output) == (0, "")
    unknown = CliRunner().invoke(cli, [*arguments, "--partitions", "sngs=4"])
    assert "did you mean 'songs'?" in unknown.output


def test_the_place_of_the_embedded_broker_may_be_given(tmp_path: Path) -> None:
    status, said = run("--save", tmp_path / "saved.json", "--state-dir", tmp_path / "state")
    assert status == 0, said
    assert word_count.config.state_dir == tmp_path / "state"
    run("--save", tmp_path / "saved.json")
    assert word_count.config.state_dir != tmp_path / "state"


def test_the_word_count_of_the_examples_is_described() -> None:
    assert describe_topology(word_count.topology()).topics == [
        "counts-by-word",
        "lines",
        "word-count-counts-repartition",
    ]


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--rolling"], 3)])
def test_plan_says_whether_the_versions_may_run_side_by_side(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    app = App("word-count")
    app.stream("lines", **TEXT).to("elsewhere")
    app.stream("more", **TEXT).merge(app.stream("others", **TEXT)).to("elsewhere")
    saved, module = tmp_path / "saved.json", tmp_path / "next_version.py"
    saved.write_text(app.describe(format="json"))
    module.write_text(
        "from streams import App, serdes\n"
        "app = App('word-count')\n"
        "for topic in ('lines', 'more'):\n"
        "    app.stream(topic, key=serdes.string, value=serdes.string).to('elsewhere')\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        result = CliRunner().invoke(
            cli, ["plan", "next_version:app", "--against", str(saved), *arguments]
        )
    assert result.exit_code == status, result.output
    assert "side by side: no" in result.output
    assert "'more' is read together with 'others' in the old version, and alone in" in result.output
    assert "remedy: end all workers of the old version" in result.output


def test_partition_counts_are_compared_as_they_were_when_the_old_version_was_saved() -> None:
    def repartitioned(partitions: int | None) -> TopologyDescription:
        return version(
            lambda app: (
                words(app).repartition(name="again", partitions=partitions).group_by_key().count()
            )
        )

    old = replace(repartitioned(None), partitions={"lines": 4})
    plan = compare_topologies(old, repartitioned(8))
    effect = the_effect(plan, "a-again-repartition", "repartition topic")
    assert effect.difference == "partitions: 4 -> 8"
    assert plan.inputs_without_counts == ()
    assert plan.inputs_as_saved == ("lines",)
    assert compare_topologies(old, repartitioned(None), {"lines": 4}).inputs_as_saved == ()
