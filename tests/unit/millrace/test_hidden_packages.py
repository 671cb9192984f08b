"""Test what is said where a module of the user's hides a package of Millrace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[3]
APPLICATION = "from millrace import App\napp = App('shop')\napp.stream('in').to('out')\n"
COMMAND = "import sys; sys.argv[0] = 'millrace'; from streams.commands.root import main; main()"
"""What the script `millrace` does."""


def run_python(
    *arguments: str, directory: Path, paths: tuple[Path, ...] = (HOME,)
) -> subprocess.CompletedProcess[str]:
    """Run Python in a directory, safe from the environment; `paths` are its PYTHONPATH."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )


def describe(path: Path, name: str) -> str:
    return (
        f"{str(path)!r} hides the package {name!r} of Millrace, because Python finds it first: "
        "rename it, or run from another directory\n"
    )


@pytest.mark.parametrize(
    ("package", "hiding"),
    [
        ("millrace", "streams"),
        ("millrace", "state"),
        ("millrace", "coordinator"),
        ("streams", "state"),
        ("streams", "coordinator"),
        ("streams", "millrace"),
    ],
)
def test_an_import_beside_a_module_that_hides_a_package_names_it(
    tmp_path: Path, package: str, hiding: str
) -> None:
    (tmp_path / f"{hiding}.py").write_text("print('the user\\'s module ran')\n")
    (tmp_path / "app.py").write_text(f"from {package} import App\n")
    done = run_python("app.py", directory=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: " + describe(tmp_path / f"{hiding}.py", hiding))
    assert done.stdout == ""


def test_a_package_of_the_user_is_named_by_its_directory(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "__init__.py").touch()
    done = run_python("-c", "import millrace", directory=tmp_path)
    assert done.stderr.endswith(describe(tmp_path / "state", "state"))


@pytest.mark.parametrize("hiding", ["streams", "state", "coordinator", "millrace"])
def test_a_command_that_imports_the_application_names_it_in_one_line(
    tmp_path: Path, hiding: str
) -> None:
    (tmp_path / f"{hiding}.py").touch()
    (tmp_path / "app.py").write_text(APPLICATION)
    done = run_python("-P", "-c", COMMAND, "run", "app:app", directory=tmp_path)
    assert done.stderr == "millrace: " + describe(tmp_path / f"{hiding}.py", hiding)
    assert done.returncode == 2


@pytest.mark.parametrize("hiding", ["state", "coordinator", "millrace"])
def test_each_command_names_a_module_that_hides_a_package_on_its_path(
    tmp_path: Path, hiding: str
) -> None:
    (tmp_path / f"{hiding}.py").touch()
    done = run_python("-P", "-c", COMMAND, "--help", directory=tmp_path, paths=(tmp_path, HOME))
    assert done.stderr == "millrace: " + describe(tmp_path / f"{hiding}.py", hiding)
    assert done.returncode == 2


def test_directories_without_init_hide_nothing(tmp_path: Path) -> None:
    for name in ("streams", "state", "coordinator", "millrace"):
        (tmp_path / name).mkdir()
    done = run_python("-c", "from millrace import App; App('shop')", directory=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_copy_of_millrace_hides_nothing(tmp_path: Path) -> None:
    for name in ("streams", "state", "coordinator"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    program = f"import sys, millrace; sys.path.insert(0, {str(tmp_path)!r})"
    check = "from streams.hidden_packages import describe_hidden_package as d; print(d())"
    done = run_python("-P", "-c", f"{program}; {check}", directory=tmp_path)
    assert done.stdout == "None\n", done.stderr
