"""Disturb workers and broker in one way after another, chosen by a seed.

kill      a worker ends by `kill -9` and is started again a little later
stop      a worker is stopped by SIGSTOP, at times for longer than its session, and continued
leave     a worker ends by SIGTERM, and is started again
broker    the embedded broker ends by `kill -9` and is started again; Apache Kafka does not, as it
          may miss a transaction marker then (docs/decisions/0035)
answers   the embedded broker loses answers of transaction calls for a while
days      days pass for the embedded broker and the workers, which run on, or are all stopped and
          come back, some of them without their disk
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.brokers import Broker
from tests.clock_shift import ClockShift
from tests.processes import ServerProcess
from tests.soak_app.workers import SESSION_TIMEOUT_MS, SoakWorker

_LOST = ("EndTxn", "TxnOffsetCommit", "AddPartitionsToTxn", "InitProducerId", "Produce", "Fetch")
_RULE = '[[request]]\naction = "{action}"\napi = "{api}"\nafter = {after}\ntimes = {times}\n\n'


class Trouble:
    """Disturbs workers and broker until it is stopped; `made` counts the disturbances by kind."""

    def __init__(
        self,
        workers: list[SoakWorker],
        broker: Broker,
        fault_file: Path | None,
        clock: ClockShift,
        random: Random,
    ) -> None:
        self.made: Counter[str] = Counter()
        self._workers = workers
        self._broker = broker
        self._faults = fault_file
        self._clock = clock
        self._random = random
        self._kinds: Mapping[str, tuple[Callable[[], None], int]] = {
            "kill": (self._kill, 5),
            "stop": (self._stop, 3),
            "leave": (self._leave, 1),
            **(
                {}
                if fault_file is None  # not the embedded broker
                else {
                    "broker": (self._restart_broker, 2),
                    "answers": (self._lose_answers, 3),
                    "days": (self._pass_days, 2),
                }
            ),
        }

        self._first = random.sample(list(self._kinds), len(self._kinds))
        """The kinds that were not made yet, so that a short run has all of them."""

    def make_one(self) -> str:
        """Disturb once and return the kind of disturbance: at first each kind once.

        What it did is undone when it returns, but for lost answers, which go on.
        """
        names = list(self._kinds)
        if self._first:
            kind = self._first.pop()
        else:
            weights = [weight for _, weight in self._kinds.values()]
            kind = self._random.choices(names, weights)[0]
        self._kinds[kind][0]()
        self.made[kind] += 1
        return kind

    def end(self) -> None:
        """Lose no answers any more."""
        self._set_rules("")

    def _kill(self) -> None:
        worker = self._random.choice(self._workers)
        worker.kill()
        self._pause(3)
        worker.start()

    def _leave(self) -> None:
        worker = self._random.choice(self._workers)
        worker.leave()
        self._pause(2)
        worker.start()

    def _stop(self) -> None:
        worker = self._random.choice(self._workers)
        os.kill(worker.pid, signal.SIGSTOP)
        self._pause(self._random.choice((1, 1.8 * SESSION_TIMEOUT_MS / 1000)))
        os.kill(worker.pid, signal.SIGCONT)

    def _restart_broker(self) -> None:
        self._broker.kill()
        self._pause(2)
        self._broker.restart()

    def _lose_answers(self) -> None:
        rules = ""
        for _ in range(self._random.randint(1, 3)):
            rules += _RULE.format(
                action=self._random.choice(("lose-answer", "lose-request", "cut-after")),
                api=self._random.choice(_LOST),
                after=self._random.randrange(20),
                times=self._random.randint(1, 3),
            )
        self._set_rules(rules)

    def _pass_days(self) -> None:
        """Let days pass: fewer than an empty group's offsets are kept, if all workers stop."""
        if self._random.random() < 0.5:
            self._clock.pass_days(8)
            self._pause(3)
            return
        for worker in self._workers:
            worker.leave()
        self._clock.pass_days(5)
        self._pause(3)
        if self._random.random() < 0.5:
            shutil.rmtree(self._random.choice(self._workers).state, ignore_errors=True)
        for worker in self._workers:
            worker.start()

    def _set_rules(self, rules: str) -> None:
        if self._faults is None:
            return
        self._faults.write_text(rules)
        assert isinstance(self._broker, ServerProcess)
        os.kill(self._broker.pid, signal.SIGHUP)

    def _pause(self, seconds_max: float) -> None:
        time.sleep(self._random.uniform(0.1, seconds_max))
