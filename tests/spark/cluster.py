"""Run a Spark cluster on this machine: a standalone master and two workers as processes.

Programs go there by `spark-submit`, as a user's do. `bare_python` makes an interpreter that has all
that Millrace needs and not Millrace itself: what a cluster's machines have when it is shipped with
the program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes import HANG_LIMIT_S, HOST, ServerProcess, free_ports

WORKERS = 2
# A short life each: what matters is how soon a JVM is there.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_home() -> Path:
    """Return the directory into which pip put Spark's scripts and jars."""
    import pyspark

    return Path(pyspark.__file__).parent


def bare_python(directory: Path) -> Path:
    """Return an interpreter that imports what is installed here, but for editable packages.

    A directory that a .pth file names is searched, its own .pth files are not read.
    """
    venv.create(directory, with_pip=False, symlinks=True)
    inside = sysconfig.get_path("purelib", vars={"base": str(directory)})
    (Path(inside) / "installed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Ran:
    """Holds how a program ended, and all that it and its driver said."""

    status: int
    output: str
    log: str


class Cluster:
    """Represents a running cluster, whose processes are ended by `close`."""

    def __init__(self) -> None:
        port, page = free_ports(2)
        self.url = f"spark://{HOST}:{port}"
        self.processes: list[ServerProcess] = []
        at = ("--host", HOST, "--port", str(port), "--webui-port", str(page))
        can = ("--host", HOST, "--webui-port", "0", "--cores", "1", "--memory", "600m")
        try:
            master = self._spawn("spark-master", "master.Master", *at)
            _wait(master, "New state: ALIVE")
            workers = [
                self._spawn(f"spark-worker-{number}", "worker.Worker", *can, self.url)
                for number in range(WORKERS)
            ]
            for each in workers:
                _wait(each, "Successfully registered with master")
        except BaseException:
            self.close()
            raise

    def _spawn(self, name: str, program: str, *arguments: str) -> ServerProcess:
        process = ServerProcess(name)
        self.processes.append(process)
        process.spawn(
            [
                str(spark_home() / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{program}",
                *arguments,
            ],
            {
                **_nothing_of_ours(),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": _JAVA,
                "SPARK_WORKER_DIR": str(process.directory / "work"),
                "SPARK_LOCAL_DIRS": str(process.directory),
            },
        )
        return process

    def submit(
        self,
        program: Path,
        *arguments: str,
        python: Path,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Ran:
        """Run the program with `spark-submit`, driver and executors with this interpreter.

        Raises subprocess.TimeoutExpired.
        """
        given = [f"spark.driver.host={HOST}", "spark.ui.enabled=false"]
        given += ["spark.executor.memory=512m", "spark.sql.shuffle.partitions=2"]
        given += [f"spark.{each}.extraJavaOptions={_JAVA}" for each in ("driver", "executor")]
        command = [str(spark_home() / "bin" / "spark-submit"), "--master", self.url]
        for each in given:
            command += ["--conf", each]
        done = subprocess.run(
            [*command, *options, str(program), *arguments],
            env={
                **os.environ,
                **_nothing_of_ours(),
                "PYSPARK_PYTHON": str(python),
                "PYSPARK_DRIVER_PYTHON": str(python),
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            cwd=self.processes[0].directory,
            capture_output=True,
            text=True,
            timeout=HANG_LIMIT_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def executors_said(self) -> dict[str, str]:
        """Return what each executor and its Python workers have logged and printed."""
        return {
            str(path): path.read_text(errors="replace")
            for each in self.processes
            for name in ("stdout", "stderr")
            for path in each.directory.glob(f"work/*/*/{name}")
        }

    def close(self) -> None:
        for each in reversed(self.processes):
            each.close()


def _wait(process: ServerProcess, said: str) -> None:
    process.wait_until_ready(lambda: said in process.log_since(0))


def _nothing_of_ours() -> dict[str, str]:
    """Return the environment of Spark's processes: no path by which these sources are found."""
    return {
        "PYTHONPATH": "",
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": HOST,
    }


INSTALLED_PYTHON = Path(sys.executable)
"""The interpreter that runs the tests, in which Millrace is installed."""
