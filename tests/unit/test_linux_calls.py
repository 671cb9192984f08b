"""Test that what only Linux has is called in two modules, and that each call has a substitute.

`tests/integration/test_without_linux.py` runs an application where all of it is hidden.
"""

from __future__ import annotations

import ast
import os
import resource
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.linux_calls import OPEN_FILES_MAX, raise_open_files_limit, yield_processor
from state.linux_calls import PrivateFile, find_memory_file_system, open_memory_file
from streams.processes.workers import SharedErrors
from tests.hidden_linux.names import LINUX_DIRECTORIES, LINUX_NAMES

ROOT = Path(__file__).parents[2]
PRODUCT = ("millrace", "streams", "state", "coordinator")
PLACES = ("state/linux_calls.py", "coordinator/linux_calls.py")


def find_linux_calls(source: str) -> Iterator[str]:
    """Yield each name and path in a module that only Linux has; docstrings are left out."""
    tree = ast.parse(source)
    texts = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in LINUX_NAMES.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in LINUX_NAMES:
            for each in node.names:
                if each.name in LINUX_NAMES[node.module]:
                    yield f"{node.module}.{each.name}"
        elif (
            isinstance(node, ast.Constant)
            and id(node) not in texts
            and isinstance(node.value, str)
            and node.value.startswith((*LINUX_DIRECTORIES, "/dev/fd"))
        ):
            yield node.value


def test_what_only_linux_has_is_called_in_two_modules() -> None:
    found = {
        str(path.relative_to(ROOT)): calls
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        if (calls := list(find_linux_calls(path.read_text())))
    }
    assert sorted(found) == sorted(PLACES), "write a substitute beside it in linux_calls.py"


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.memfd_create('x')",
        "from os import pidfd_open",
        "from pathlib import Path\nPath('/proc/self/stat')",
        "import resource\nresource.RUSAGE_THREAD",
    ],
)
def test_a_call_that_only_linux_has_is_found(source: str) -> None:
    assert list(find_linux_calls(source))


@pytest.fixture(params=[True, False], ids=["Linux", "elsewhere"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Run a test on Linux, and without what only Linux has; TMPDIR is returned."""
    if not request.param:
        monkeypatch.delattr(os, "memfd_create")
        monkeypatch.delattr(os, "sched_yield")
        monkeypatch.setattr("state.linux_calls.MEMORY_FILE_SYSTEM", tmp_path / "missing")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_forked_processes_share_a_memory_file_without_a_name(system: Path) -> None:
    file = open_memory_file("test")
    child = os.fork()
    if child == 0:
        os.pwrite(file, b"by the child", 0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.pread(file, 100, 0) == b"by the child"
    os.close(file)
    assert list(system.iterdir()) == []


def test_each_message_is_claimed_once(system: Path) -> None:
    errors = SharedErrors()
    assert [errors.try_claim_message(each) for each in ("a", "b", "a")] == [True, True, False]


def test_a_private_file_is_read_twice_and_gone_with_its_path(system: Path) -> None:
    path = PrivateFile(b"content", "test")
    assert [Path(path).read_bytes() for _ in range(2)] == [b"content", b"content"]
    assert all(each.stat().st_mode & 0o077 == 0 for each in system.iterdir())
    held = str.__str__(path)
    del path
    assert not os.path.exists(held)
    assert list(system.iterdir()) == []


def test_a_fork_leaves_the_private_file_of_its_parent(system: Path) -> None:
    path = PrivateFile(b"content", "test")
    child = os.fork()
    if child == 0:
        del path
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert Path(path).read_bytes() == b"content"


def test_a_private_file_without_a_memory_file_is_removed_at_the_end(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "del os.memfd_create\n"
        "from state.linux_calls import PrivateFile\n"
        "path = PrivateFile(b'secret', 'test')\n"
        "print(len(os.listdir(os.environ['TMPDIR'])))\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"1\n"
    assert list(tmp_path.iterdir()) == []


def test_openssl_reads_a_private_file(system: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(ssl.SSLError, match="NO_CERTIFICATE_OR_CRL_FOUND"):
        context.load_verify_locations(cafile=PrivateFile(b"no certificate", "test"))


def test_memory_is_found_where_the_system_has_a_file_system_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state.linux_calls.MEMORY_FILE_SYSTEM", tmp_path)
    assert find_memory_file_system() == tmp_path
    monkeypatch.setattr("state.linux_calls.MEMORY_FILE_SYSTEM", tmp_path / "missing")
    assert find_memory_file_system() is None


def test_the_processor_is_yielded_where_the_system_can(monkeypatch: pytest.MonkeyPatch) -> None:
    yields: list[None] = []
    monkeypatch.setattr(os, "sched_yield", lambda: yields.append(None))
    yield_processor()
    assert len(yields) == 1
    monkeypatch.delattr(os, "sched_yield")
    yield_processor()
    assert len(yields) == 1


def test_the_limit_on_open_files_is_as_high_as_the_system_lets_it_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = (256, resource.RLIM_INFINITY)

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        nonlocal limits
        if not 0 <= wanted[0] <= OPEN_FILES_MAX:
            raise ValueError("current limit exceeds maximum limit")  # as on macOS
        limits = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    raise_open_files_limit()
    assert limits == (OPEN_FILES_MAX, resource.RLIM_INFINITY)
