"""Check the laws that hold of a group's history, whatever happened to its members.

Each law looks at the lives of all processes that were ever in the group, and returns what it finds
broken, a line each.

When does an ownership end? With the end of what the member does in its revocation, or with the
member's own end: it was killed or it has closed. There remains the member that was fenced: its
session ran out while it was stopped, or the broker holds it for lost for another reason. It learns
of that long after the broker has given its partitions away, rightly, and says `lost`. Until when it
was the owner only the broker knows, but a commit that the broker took proves it to have been the
owner when it asked. So an ownership that was lost ends when the last commit was asked for that the
broker took in it; one of which it took none has never been. If somebody else had the partition by
then, there were two owners, or a zombie's commit was accepted. The same holds for an ownership in
which the member was stopped, even if it says `revoked`: it may close before it hears what it is.
What it consumed after that is consumed twice, which at-least-once allows.

That alone would excuse a broker that throws members out for nothing; hence `fenced_for_nothing`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.clients.groups.delays import Delay, waited_ns
from tests.clients.groups.events import Event, Life
from tests.clients.groups.roster import SESSION_TIMEOUT_MS

# By then whoever lost its place has heard of it: its session is over, or the broker back again.
AFTERMATH_NS = 20 * 1_000_000_000
# By then every member has heard what became of a rebalance that the broker's end has cut short.
RECONNECTED_NS = 5 * 1_000_000_000
SESSION_NS = SESSION_TIMEOUT_MS * 1_000_000
# Half the session of a member, and how long it may take to hear that it is over.
SILENCE_NS = SESSION_NS // 2
AWAKE_NS = 2 * 1_000_000_000

# Every record of the input: its partition and offset, and its number.
Records = Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True, order=True)
class Ownership:
    partition: int
    begin_ns: int
    end_ns: float  # infinite: it has not ended
    owner: str

    def __str__(self) -> str:
        return f"{self.owner} from {self.begin_ns / 1e9:.3f} to {self.end_ns / 1e9:.3f}"


@dataclass(frozen=True, slots=True)
class Return:
    """Holds what a static member owned before and after it was away."""

    member: str
    begin_ns: int
    end_ns: int
    before: frozenset[int]
    after: frozenset[int]


def ownerships(life: Life) -> Iterator[Ownership]:
    """Yield all that this life owned, a partition each, as the module's docstring counts it."""
    begun: dict[int, int] = {}
    proved: dict[int, int] = {}
    for event in life.events:
        match event.what:
            case "assigned":
                for partition in event.numbers:
                    begun.setdefault(partition, event.at_ns)
            case "committed":
                partition, _, asked_ns = event.numbers
                proved[partition] = asked_ns
            case "revoked" | "lost":
                for partition in set(event.numbers) & set(begun):
                    begin_ns = begun.pop(partition)
                    end_ns = event.at_ns
                    stopped = any(begin_ns < paused < end_ns for paused in life.paused)
                    if stopped or event.what == "lost":
                        end_ns = proved.get(partition, 0)
                    if begin_ns < end_ns:
                        yield Ownership(partition, begin_ns, end_ns, life.name)
    end = float("inf") if life.ended_ns is None else life.ended_ns
    for partition, begin_ns in begun.items():
        yield Ownership(partition, begin_ns, end, life.name)


def two_owners(lives: Iterable[Life]) -> list[str]:
    """Check that no partition is owned by two members at once."""
    found = []
    everything = sorted(each for life in lives for each in ownerships(life))
    for partition, those in itertools.groupby(everything, key=lambda each: each.partition):
        latest: Ownership | None = None
        for each in those:
            if latest is not None and each.begin_ns < latest.end_ns:
                found.append(f"partition {partition}: {latest}, and {each}")
            if latest is None or each.end_ns > latest.end_ns:
                latest = each
    return found


def fenced_for_nothing(
    lives: Iterable[Life], broker_ends_ns: Sequence[int], broker_delays: Sequence[Delay] = ()
) -> list[str]:
    """Check that a member that says `lost` had a reason to be fenced.

    It was stopped before, or the broker had just been killed, or it had no turn for half its
    session on a busy machine: what it read and wrote says so, or that threads of it and of the
    broker waited as long for a processor. (The Java client also says it when it closes in the
    middle of a rebalance.)
    """
    found = []
    for life in lives:
        causes = (*life.paused, *broker_ends_ns)
        for event in life.events:
            if event.what != "lost" or not event.numbers:
                continue
            is_closing = life.asked_to_end_ns is not None and life.asked_to_end_ns < event.at_ns
            has_cause = any(0 < event.at_ns - cause <= AFTERMATH_NS for cause in causes)
            if not is_closing and not has_cause and not _had_no_turn(life, broker_delays, event):
                found.append(f"{life.name} lost {event.numbers} at {event.at_ns / 1e9:.3f}")
    return found


def _had_no_turn(life: Life, broker_delays: Sequence[Delay], lost: Event) -> bool:
    """Tell whether it was lost on a machine that was too busy for it to be heard of in time."""
    return _was_silent(life, lost.at_ns) or _was_held_up(life, broker_delays, lost.at_ns)


def _was_silent(life: Life, until_ns: int) -> bool:
    """Tell whether a long silence has ended at this moment, or just before it."""
    times = [each.at_ns for each in life.events if each.at_ns <= until_ns]
    return any(
        after - before >= SILENCE_NS and until_ns - after <= AWAKE_NS
        for before, after in itertools.pairwise(times)
    )


def _was_held_up(life: Life, broker_delays: Sequence[Delay], until_ns: int) -> bool:
    """Tell whether heartbeats were late because member and broker waited for a processor.

    Only the session that ended by then counts.
    """
    begin_ns = until_ns - SESSION_NS - AWAKE_NS
    both = (life.delays, broker_delays)
    return sum(waited_ns(each, begin_ns, until_ns) for each in both) >= SILENCE_NS


def lost_records(lives: Iterable[Life], records: Records) -> list[str]:
    """Check that each record is consumed, and that what is consumed is what was produced there."""
    consumed = {
        (event.numbers[0], event.numbers[1]): event.numbers[2]
        for life in lives
        for event in life.events
        if event.what == "consumed"
    }
    missing = sorted(set(records) - set(consumed))
    found = [f"{len(missing)} never consumed, the first at {missing[0]}"] if missing else []
    return found + [
        f"{number} consumed at {place}, where {records.get(place)} is"
        for place, number in consumed.items()
        if records.get(place) != number
    ]


def bad_starts(lives: Iterable[Life]) -> list[str]:
    """Check that an owner begins where the ones before it have committed.

    That is not before what was committed when it was assigned, and not behind what had been
    consumed.
    """
    in_time = sorted(
        ((event, life) for life in lives for event in life.events), key=lambda each: each[0].at_ns
    )
    found = []
    committed: dict[int, int] = {}
    consumed: dict[int, int] = {}
    expects: dict[tuple[str, int], int] = {}
    for event, life in in_time:
        match event.what:
            case "assigned":
                for partition in event.numbers:
                    expects[life.name, partition] = committed.get(partition, 0)
            case "committed":
                partition, offset, _ = event.numbers
                committed[partition] = max(offset, committed.get(partition, 0))
            case "consumed":
                partition, offset, _ = event.numbers
                low = expects.pop((life.name, partition), offset)
                high = max(low, consumed.get(partition, 0))
                if not low <= offset <= high:
                    found.append(
                        f"{life.name} began partition {partition} at {offset}, "
                        f"not within {low} and {high}"
                    )
                consumed[partition] = max(offset + 1, consumed.get(partition, 0))
    return found


def disturbed(
    lives: Sequence[Life],
    returns: Iterable[Return],
    broker_ends_ns: Sequence[int],
    session_ms: int,
    broker_delays: Sequence[Delay] = (),
) -> list[str]:
    """Check that nobody notices when a static member is away for less than its session.

    Nobody else gains or loses a partition, and it has its own again; unless another was fenced then
    because it had no turn.
    """
    found = []
    fenced_ns = [
        event.at_ns
        for life in lives
        for event in life.events
        if event.what == "lost" and event.numbers and _had_no_turn(life, broker_delays, event)
    ]
    for each in returns:
        was_late = each.end_ns - each.begin_ns > session_ms * 1_000_000
        broker_ended = any(
            each.begin_ns - RECONNECTED_NS < end < each.end_ns for end in broker_ends_ns
        )
        other_fenced = any(
            each.begin_ns < lost_ns < each.end_ns + AFTERMATH_NS for lost_ns in fenced_ns
        )
        if was_late or broker_ended or other_fenced:
            continue
        if each.before != each.after:
            found.append(f"{each.member}: {sorted(each.after)}, and {sorted(each.before)} before")
        found += [
            f"{life.name}: {event.what} {event.numbers}, while {each.member} was away"
            for life in lives
            if not life.name.startswith(f"{each.member}.")
            for event in life.events
            if each.begin_ns < event.at_ns < each.end_ns and _moves(event)
        ]
    return found


def _moves(event: Event) -> bool:
    return event.what in ("assigned", "revoked", "lost") and bool(event.numbers)


def not_exact(outputs: Sequence[Sequence[int]], records: Records) -> list[str]:
    """Check that each partition of the output has its input's records once and in their order."""
    found = []
    for partition, values in enumerate(outputs):
        expected = [number for (at, _), number in sorted(records.items()) if at == partition]
        if list(values) != expected:
            lost = len(set(expected) - set(values))
            doubled = len(values) - len(set(values))
            found.append(f"partition {partition}: {lost} lost, {doubled} doubled, or out of order")
    return found
