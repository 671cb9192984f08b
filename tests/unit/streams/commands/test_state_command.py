"""Test `millrace state inspect` and `state dump` on stores of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from state.buffered_change import RecordOrigin
from state.directory import StateDirectory
from state.rocksdb import RocksDisk
from state.store_checkpoint import StoreCheckpoint
from state.windowed import Windowed
from streams import serdes
from streams.commands.root import cli
from streams.graph.nodes import StoreKind, StoreSpec
from streams.runtime.tasks.store_opening import open_store

MODULE = """
from streams import App, serdes, windows
app = App("shop")
text = dict(key=serdes.string, value=serdes.string)
orders = app.stream("orders", **text).group_by_key()
orders.count(store="plain")
orders.windowed_by(windows.tumbling(100, grace=0)).count(store="windows")
"""


class Kind(NamedTuple):
    """Holds how a store is declared, how a test fills it, and the lines that a dump has then."""

    settings: Mapping[str, Any]
    fill: Callable[[Any], object]
    kind: str
    lines: list[str]


def fill_plain(store: Any) -> None:
    store.put("a", 1, 5)
    store.put("b", 2, 6)


def fill_versions(store: Any) -> None:
    store.put("a", 1, 5)
    store.put("a", None, 7)


ORIGIN = RecordOrigin(5, 0, 0, "orders", ())
KINDS = {
    "plain": Kind({"kind": StoreKind.KEY_VALUE}, fill_plain, "key-value", ["a\t1", "b\t2"]),
    "windows": Kind(
        {"kind": StoreKind.WINDOW, "window_size_ms": 100, "is_ordered_by_time": True},
        lambda store: store.put("a", 1, 200, 250),
        "window",
        ["[a@200/?]\t1"],
    ),
    "sessions": Kind(
        {"kind": StoreKind.SESSION},
        lambda store: store.put(Windowed("a", 100, 130), 1, 130),
        "session",
        ["[a@100/130]\t1"],
    ),
    "versions": Kind(
        {"kind": StoreKind.VERSIONED}, fill_versions, "versioned", ["a\t1", "a\tnull"]
    ),
    "buffer": Kind(
        {"kind": StoreKind.BUFFER},
        lambda store: store.put(b"a", 9, None, serdes.int64.serialize(1), ORIGIN),
        "buffer",
        ["a\t1"],
    ),
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    """Fill a store of every kind in task 0_1 of the application `shop`."""
    monkeypatch.setenv("MILLRACE_STATE_DIR", str(tmp_path))
    directory = StateDirectory(tmp_path, "shop")
    lock = directory.lock_task("0_1")
    for name, kind in KINDS.items():
        spec = StoreSpec(name=name, key=serdes.string, value=serdes.int64, **kind.settings)
        store = open_store(spec, RocksDisk(directory.build_store_path("0_1", name)))
        kind.fill(store)
        store.drain_writes()
        store.commit(StoreCheckpoint(9, "topic-id", 1_500))
        store.close()
    lock.release()
    return directory


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["state", *arguments])


def test_every_store_is_listed_with_its_kind_and_its_place_in_the_changelog(
    directory: StateDirectory,
) -> None:
    result = run("inspect", "shop", "--json")
    assert result.exit_code == 0, result.output
    rows = {row["store"]: row for row in map(json.loads, result.stdout.splitlines())}
    assert {name: row["kind"] for name, row in rows.items()} == {
        name: each.kind for name, each in KINDS.items()
    }
    assert {name: row["entries"] for name, row in rows.items()} == {
        name: len(each.lines) for name, each in KINDS.items()
    }
    plain = rows["plain"]
    assert plain.pop("bytes") > 0
    assert plain == {
        "task": "0_1",
        "store": "plain",
        "kind": "key-value",
        "entries": 2,
        "entries_estimated": False,
        "changelog_offset": 9,
        "written": "1970-01-01T00:00:01.500Z",
        "used_by": None,
    }
    assert "changelog offset" in run("inspect", "shop").stdout


def test_the_entries_of_a_large_store_are_about_so_many(
    directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.commands.state_command.COUNTED_ENTRIES_MAX", 1)
    rows = {
        row["store"]: row
        for row in map(json.loads, run("inspect", "shop", "--json").stdout.splitlines())
    }
    assert (rows["plain"]["entries"], rows["plain"]["entries_estimated"]) == (2, True)
    assert (rows["windows"]["entries"], rows["windows"]["entries_estimated"]) == (1, False)
    assert "about 2 " in run("inspect", "shop").stdout


def test_entries_are_counted_where_rocksdb_estimates_none(directory: StateDirectory) -> None:
    lock = directory.lock_task("0_1")
    disk = RocksDisk(directory.build_store_path("0_1", "plain"))
    # In the estimate a deletion takes away a key, also if there was none.
    disk.write_changes(dict.fromkeys((b"x", b"y", b"z")), StoreCheckpoint(9, "topic-id", 1_500))
    assert disk.approximate_count() == 0
    disk.close()
    lock.release()
    rows = [json.loads(line) for line in run("inspect", "shop", "--json").stdout.splitlines()]
    assert [row["entries"] for row in rows if row["store"] == "plain"] == [2]


@pytest.mark.parametrize("store", KINDS)
def test_the_entries_of_a_store_are_dumped_by_serdes_that_are_named(
    directory: StateDirectory, store: str
) -> None:
    result = run("dump", "shop", store, "--key-serde", "string", "--value-serde", "int64")
    assert (result.exit_code, result.stdout.splitlines()) == (0, KINDS[store].lines), result.output


@pytest.mark.parametrize(
    ("store", "key_serde", "line"),
    [
        ("windows", "windowed(string)", "[a@200/?]\t1"),
        ("windows", "windowed(string, 60)", "[a@200/260]\t1"),
        ("sessions", "session_windowed(string)", "[a@100/130]\t1"),
        ("sessions", "windowed(string)", "[a@100/130]\t1"),
    ],
)
def test_the_serde_of_a_windowed_key_is_that_of_its_key_where_the_store_has_the_window(
    directory: StateDirectory, store: str, key_serde: str, line: str
) -> None:
    result = run("dump", "shop", store, "--key-serde", key_serde, "--value-serde", "int64")
    assert (result.exit_code, result.stdout) == (0, f"{line}\n"), result.output


def test_windowed_keys_of_a_store_without_windows_are_read_whole(
    directory: StateDirectory,
) -> None:
    lock = directory.lock_task("0_2")
    key = serdes.windowed(serdes.string, 60)
    spec = StoreSpec(name="table", key=key, value=serdes.int64, kind=StoreKind.KEY_VALUE)
    store: Any = open_store(spec, RocksDisk(directory.build_store_path("0_2", "table")))
    store.put(Windowed("a", 200, 260), 1, 5)
    store.drain_writes()
    store.commit(StoreCheckpoint(9, "topic-id", 1_500))
    store.close()
    lock.release()
    options = ("--key-serde", "windowed(string, 60)", "--value-serde", "int64")
    assert run("dump", "shop", "table", *options).stdout == "[a@200/260]\t1\n"


def test_the_apps_own_serdes_and_windows_are_used(
    directory: StateDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "state_app.py").write_text(MODULE)
    assert run("dump", "state_app:app", "plain", "-n", "1").stdout == "a\t1\n"
    assert json.loads(run("dump", "state_app:app", "windows", "--json").stdout) == {
        "task": "0_1", "key": "a", "start_ms": 200, "end_ms": 300, "timestamp_ms": 250, "value": 1,
    }  # fmt: skip
    result = run("dump", "state_app:app", "windows", "-m")
    assert result.stdout == "0_1\t1970-01-01T00:00:00.250Z\t[a@200/300]\t1\n"
    result = run("dump", "state_app:app", "sessions")
    assert result.exit_code == 2
    assert "'shop' has no store 'sessions': its stores are plain, windows" in result.stderr


def test_a_store_that_a_worker_uses_is_told_and_not_read(directory: StateDirectory) -> None:
    lock = directory.lock_task("0_1")
    try:
        row = json.loads(run("inspect", "shop", "--json").stdout.splitlines()[0])
        assert row["entries"] is None
        assert row["used_by"].startswith("process ")
        result = run("dump", "shop", "plain")
    finally:
        lock.release()
    assert result.exit_code == 2
    assert "0_1 is in use by process" in result.stderr
    assert "millrace changelog dump" in result.stderr
    assert run("dump", "shop", "plain", "--value-serde", "int64").stdout == "a\t1\nb\t2\n"


def test_reading_changes_no_file(directory: StateDirectory) -> None:
    def read_files() -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in directory.path.rglob("*")
            if path.is_file() and not path.name.startswith("LOG")
        }

    before = read_files()
    run("inspect", "shop")
    run("dump", "shop", "plain")
    assert read_files() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "shops"), "holds no state of 'shops', but of shop: name the state directory"),
        (("dump", "shop", "plane"), "holds no store 'plane': there are 0_1/buffer, 0_1/plain"),
        (("dump", "shop", "plain", "--task", "0_0"), "holds no store 'plain' of task 0_0: there"),
        (
            ("dump", "shop", "plain", "--value-serde", "int32"),
            "the value of an entry (task 0_1) is no int32 (needs 4 bytes, got 8)",
        ),
    ],
)
def test_what_is_not_there_is_one_line(
    directory: StateDirectory, arguments: tuple[str, ...], message: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
