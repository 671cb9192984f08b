"""Run `make demo`: load the input, kill workers and broker, and check the counts word for word.

With `--spark` Spark reconciles the counts too, and says which words are off and by which records.

The exit status is 0 only if every word was counted exactly as often as it stands in the files, 1 if
the counts are off (at least once they will be), and 2 if something could not run, or if Spark and
the plain loop over the files don't come to the same verdict.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from confluent_kafka import KafkaException
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.demo.corpus import Line, count_words, read_lines
from examples.demo.processes import (
    SESSION_TIMEOUT_MS,
    Broker,
    DemoFailed,
    Process,
    Target,
    run_reconcile,
    start_worker,
)
from examples.demo.topics import WAIT_S, Follower, Verdict, WordCountTopics, compare
from streams.command_options import ConnectionFile
from streams.connection.settings import parse_connection
from streams.errors import OutcomeUnknown, UserError
from streams.membership.connection import ConnectionLost
from streams.settings.command_line import read_connection_option
from streams.settings.config import EMBEDDED
from streams.spark.environment import check_java, check_packages
from streams.spark.source.broker_access import BrokerAccess

WORKERS = 2
WORKER_KILLS_AT = (("written", 0.1), ("written", 0.3), ("counted", 0.6))
"""Shares of the words at which a worker is killed, each time another one: twice while the lines
are read and words are written to the repartition topic, and once while words are counted."""
BROKER_KILL_AT = 0.75
GUARANTEES = {"exactly_once_v2": "exactly once", "at_least_once": "at least once"}
QUIET_S = 1.0
STALLED_S = 60.0

console = Console()


@dataclass
class Run:
    """Follows one run of the demo, killing workers and the broker at set points of its progress."""

    topics: WordCountTopics
    follower: Follower
    broker: Broker | None
    workers: list[Process]
    truth: Counter[str]
    progress: Progress
    worker_kills: list[tuple[str, float]] = field(default_factory=lambda: list(WORKER_KILLS_AT))
    broker_kills: list[float] = field(default_factory=lambda: [BROKER_KILL_AT])

    def follow(self) -> float:
        """Kill processes until all words are counted, and return the seconds that this took."""
        total = self.truth.total()
        bar = self.progress.add_task("words counted", total=total)
        began = changed_at = time.monotonic()
        counted = 0
        while True:
            time.sleep(0.005)
            now = time.monotonic()
            if self.follower.counted != counted:
                counted, changed_at = self.follower.counted, now
                self.progress.update(bar, completed=counted)
            self._kill_at(counted / total, total)
            self._check_workers()
            if now - changed_at > QUIET_S and counted >= total and self.topics.drained():
                return changed_at - began
            if now - changed_at > STALLED_S:
                return changed_at - began

    def _kill_at(self, share: float, total: int) -> None:
        """Kill and restart a worker or the broker if this share of words is due for a kill."""
        if self.worker_kills:
            phase, moment = self.worker_kills[0]
            reached = share if phase == "counted" else self.topics.words_written() / total
            if reached >= moment:
                self.worker_kills.pop(0)
                victim = len(self.worker_kills) % len(self.workers)
                self.workers[victim].kill()
                self.workers[victim].start()
                self.progress.console.print(
                    f"  kill -9 worker {victim} with {reached:.0%} of the words {phase}, "
                    "started again"
                )
        if self.broker is not None and self.broker_kills and share >= self.broker_kills[0]:
            self.broker_kills.pop(0)
            away_s = self.broker.restart()
            self.progress.console.print(
                f"  kill -9 broker with {share:.0%} of the words counted, "
                f"listening again after {away_s:.2f} s"
            )

    def _check_workers(self) -> None:
        """Raise DemoFailed if a worker has ended by itself."""
        for number, process in enumerate(self.workers):
            status = process.poll_exit_status()
            if status is not None:
                raise DemoFailed(
                    f"worker {number} ended with status {status}:\n{process.read_log_tail()}"
                )

    @property
    def kills(self) -> str:
        """Return how many workers and brokers were killed, in words."""
        workers = sum(process.kills for process in self.workers)
        return f"{workers} of workers, {self.broker.kills if self.broker else 0} of the broker"


def result_table(run: Run, lines: int, seconds: float, verdict: Verdict, guarantee: str) -> Table:
    """Create a table with the results of a run."""
    table = Table(title=f"word count, {GUARANTEES[guarantee]}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    words = run.truth.total()
    table.add_row("lines read", f"{lines:,}")
    table.add_row("words in the files", f"{words:,}")
    table.add_row("words counted", f"{verdict.counted:,}")
    table.add_row("seconds", f"{seconds:.1f}")
    # Each line is one record, and each word is another one in the repartition topic.
    table.add_row("records a second", f"{(lines + words) / seconds:,.0f}")
    table.add_row("kills survived", run.kills)
    table.add_row("words missing", f"{verdict.missing:,}")
    table.add_row("words counted twice", f"{verdict.twice:,}")
    return table


def demo(
    guarantee: Annotated[
        str, typer.Option(help="exactly_once_v2 or at_least_once.")
    ] = "exactly_once_v2",
    broker: Annotated[str, typer.Option(help="embedded, or host:port of any Kafka.")] = "embedded",
    connection: ConnectionFile = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Let Spark reconcile the results too.")
    ] = False,
    lines: Annotated[int | None, typer.Option(min=1, help="Only so many lines.")] = None,
    wait_s: Annotated[
        float, typer.Option("--wait", help="Seconds that the broker has for an answer.")
    ] = WAIT_S,
) -> None:
    """Word count on the Python standard library's sources, with kills."""
    if guarantee not in GUARANTEES:
        console.print(f"guarantee {guarantee!r}: choose {' or '.join(GUARANTEES)}")
        raise typer.Exit(2)
    target = Target(broker, connection)
    directory = Path(tempfile.mkdtemp(prefix="millrace-demo-"))
    try:
        exact = run_demo(guarantee, target, directory, spark=spark, lines_max=lines, wait_s=wait_s)
    except (DemoFailed, UserError, OutcomeUnknown, ConnectionLost, KafkaException) as error:
        console.print(f"[bold red]{escape(str(error))}[/]\nlogs and data are in {directory}")
        raise typer.Exit(2) from None
    if exact or guarantee == "at_least_once":
        shutil.rmtree(directory)
    else:
        console.print(f"logs and data are in {directory}")
    raise typer.Exit(0 if exact else 1)


def run_demo(
    guarantee: str,
    target: Target,
    directory: Path,
    *,
    spark: bool = False,
    lines_max: int | None = None,
    wait_s: float = WAIT_S,
) -> bool:
    """Run the demo and return whether every word was counted exactly once.

    Raises DemoFailed where something could not run at all, and what the clients raise where brokers
    don't answer, or not in time, or refuse the credentials.
    """
    if spark:
        check_spark()
    given = parse_connection(read_connection_option(target.connection).get("connection", {}))
    if given and target.address == EMBEDDED:
        raise DemoFailed("a connection is for a cluster: name it, --broker host:port")
    console.print(
        "starting a broker"
        if target.address == EMBEDDED
        else f"creating topics on broker {target.address}"
    )
    embedded = Broker(directory) if target.address == EMBEDDED else None
    suffix = "" if embedded is not None else f"-{uuid4().hex[:8]}"
    workers: list[Process] = []
    try:
        target = Target(embedded.address) if embedded is not None else target
        access = BrokerAccess(target.address, given)
        topics = WordCountTopics(access, suffix, wait_s=wait_s)
        topics.create_topics()
        console.print(
            f"broker {target.address}, {WORKERS} workers, "
            f"session time-out {SESSION_TIMEOUT_MS / 1000:g} s"
        )
        lines = list(islice(read_lines(), lines_max))
        truth = count_words(lines)
        with progress_bars() as progress:
            load_lines(topics, lines, progress)
            follower = Follower(access, suffix)
            for number in range(WORKERS):
                workers.append(start_worker(number, target, guarantee, suffix, directory))
            run = Run(topics, follower, embedded, workers, truth, progress)
            seconds = run.follow()
        for process in workers:
            process.stop()
        follower.stop()
        verdict = compare(truth, topics.read_final_counts())
        console.print(result_table(run, len(lines), seconds, verdict, guarantee))
        if spark:
            check_agreement(verdict, balanced=run_reconcile(target, suffix))
        if embedded is None and (why := topics.delete_topics()):
            console.print(f"topics of this run may be left on {target.address} ({escape(why)})")
    finally:
        for process in [*workers, *([embedded] if embedded is not None else [])]:
            process.stop()
    return print_verdict(verdict, guarantee)


def check_spark() -> None:
    """Raise DemoFailed if Spark or Java is missing, before the demo has begun its work."""
    try:
        check_packages()
        check_java(os.environ)
    except UserError as error:
        raise DemoFailed(str(error)) from None


def check_agreement(verdict: Verdict, *, balanced: bool) -> None:
    """Raise DemoFailed unless Spark's verdict is that of the demo's own count.

    Spark has read the topics, and the loop has read the files.
    """
    if balanced != verdict.exact:
        raise DemoFailed(
            f"Spark says that the results {'are' if balanced else 'are not'} as expected, and by "
            f"the files {verdict.missing:,} words are missing and {verdict.twice:,} counted twice"
        )


def progress_bars() -> Progress:
    """Create the bars that show the progress of a run."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def load_lines(topics: WordCountTopics, lines: list[Line], progress: Progress) -> None:
    """Write the lines to the input topic, and show the progress in a bar."""
    bar = progress.add_task("lines loaded", total=len(lines))
    topics.load(lines, lambda number: progress.update(bar, completed=number))


def print_verdict(verdict: Verdict, guarantee: str) -> bool:
    """Print whether all words were counted exactly once, and return whether they were."""
    if verdict.exact:
        console.print("[bold green]every word was counted exactly as often as it stands there")
        if guarantee == "at_least_once":
            console.print("by luck: no kill fell between producing and committing; run it again")
        return True
    console.print(f"[bold red]the counts are off[/] (the worst is {verdict.example})")
    if guarantee == "at_least_once":
        console.print("at least once: what a killed worker had produced was produced again")
    return False


if __name__ == "__main__":
    typer.run(demo)
