"""Check that the internal topics of a Kafka Streams application are those of this one.

State is in them by name and by partition. So both have the same names, and as many partitions:

    what is found                          what it means
    a topic that no step here uses         its state would be left behind
    a store or step here without a topic   it would begin empty
    another number of partitions           keys would be looked for in others than they are in

Nothing of this is mended by a reset, which would delete the state that is to be taken over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from streams.commands.internal_topics import find_internal_topics
from streams.common.counted import format_count
from streams.errors import ConfigError
from streams.runtime.assigning.internal_topics import list_changelogs, list_internal_topics
from streams.runtime.assigning.lost_topics import derive_internal_counts
from streams.topology.build import Topology
from streams.topology.expand import name_changelog_topic

_SUFFIXES = ("-changelog", "-repartition")
_GENERATED_NAMES = (
    (re.compile(r"KSTREAM-(JOIN|OUTER)THIS-\d{10}-store"), "-this-join-store"),
    (re.compile(r"KSTREAM-(JOIN|OUTER)OTHER-\d{10}-store"), "-other-join-store"),
    (re.compile(r"KSTREAM-OUTERSHARED-\d{10}-store"), "-shared-join-store"),
    (
        re.compile(r"KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-\d{10}-topic"),
        "-subscription-registration-topic",
    ),
    (
        re.compile(r"KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-\d{10}-topic"),
        "-subscription-response-topic",
    ),
    (
        re.compile(r"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-\d{10}"),
        "-subscription-store",
    ),
)
"""The names that Java generates for stores and topics of joins, and the ends of the names here
which `internal_names` replaces by them."""


def check_imported_topics(
    topology: Topology, partition_counts: Mapping[str, int], groups: Iterable[str]
) -> None:
    """Raise ConfigError if internal topics differ from what this application needs.

    `partition_counts` are the partitions of all topics, `groups` the ids of all groups: the topics
    of one whose id begins with this application's are not its own.
    """
    _check_inputs(topology, partition_counts)
    _check_internal_topics(topology, partition_counts, groups)
    _check_partitions(topology, partition_counts)


def _check_inputs(topology: Topology, partition_counts: Mapping[str, int]) -> None:
    """Raise ConfigError for inputs that do not exist."""
    if missing := sorted(set(topology.input_topics) - partition_counts.keys()):
        raise ConfigError(
            f"there is no topic {missing[0]!r}, which this application reads: give its source the "
            "topic that it has in Java, or begin with a new one after the import"
        )


def _check_internal_topics(
    topology: Topology, partition_counts: Mapping[str, int], groups: Iterable[str]
) -> None:
    """Raise ConfigError for internal topics that only one of the two applications has."""
    mine = list_internal_topics(topology).keys()
    found = find_internal_topics(
        topology.application_id, partition_counts, groups, topology=topology
    )
    others = [t for t in found.undecided if t not in mine and t.endswith(_SUFFIXES)]
    absent = sorted(mine - partition_counts.keys())
    if not others and not absent:
        return
    sentences = []
    if others:
        sentences.append(
            f"Kafka Streams has the internal topics {', '.join(map(repr, others))}, which this "
            "application does not use: their state would be left behind"
        )
    sentences += _explain_unused(topology, others)
    if absent:
        stores = {topic: spec.name for topic, spec in list_changelogs(topology).items()}
        named = (
            f"{topic!r} (store {stores[topic]!r})" if topic in stores else repr(topic)
            for topic in absent
        )
        sentences.append(
            f"This application needs the internal topics {', '.join(named)}, which Kafka Streams "
            "does not have"
        )
    sentences.append(_advise_on_differing_names(bool(others), bool(absent)))
    raise ConfigError(". ".join(sentences) + advise_internal_names(topology, partition_counts))


def advise_internal_names(topology: Topology, topics: Iterable[str]) -> str:
    """Return how the names of joins that Java has generated are given; empty if there are none.

    `topics` are those of the cluster. A pair is offered only where Java has one name of a kind that
    is not here, and this application has one that is not in Java, be they generated or given:
    beside another, state of one join could go to another join.
    """
    existing, needed = set(topics), list_internal_topics(topology).keys()
    theirs = _list_unprefixed_names(topology, existing - needed)
    mine = _list_unprefixed_names(topology, needed - existing)
    pairs: dict[str, str] = {}
    unclear: list[str] = []
    for generated, ending in _GENERATED_NAMES:
        in_java = [name for name in theirs if generated.fullmatch(name)]
        java_joins, joins_here = (
            [name for name in names if generated.fullmatch(name) or name.endswith(ending)]
            for names in (theirs, mine)
        )
        if (
            java_joins == in_java
            and len(in_java) == 1
            and _is_one_chosen_name(joins_here, generated)
        ):
            pairs[joins_here[0]] = in_java[0]
        else:
            unclear += in_java
    if not pairs and not unclear:
        return ""
    advice = ". Java has generated names for joins, which App(..., internal_names=...) gives here"
    if pairs:
        advice += f": if these are the same joins, internal_names={pairs}"
    if unclear:
        advice += (
            f"; for {', '.join(map(repr, unclear))} name the joins here, and add the names of "
            "their stores and topics, without the application's id"
        )
    return advice


def _is_one_chosen_name(names: list[str], generated: re.Pattern[str]) -> bool:
    """Return whether there is one name, and it was not generated."""
    return len(names) == 1 and generated.fullmatch(names[0]) is None


def _list_unprefixed_names(topology: Topology, topics: Iterable[str]) -> list[str]:
    """Return the names of stores and of topics without the application's id, sorted."""
    prefix = f"{topology.application_id}-"
    own = sorted(topic.removeprefix(prefix) for topic in topics if topic.startswith(prefix))
    return [name.removesuffix("-changelog") for name in own]


def _advise_on_differing_names(has_others: bool, has_absent: bool) -> str:
    """Return what to do about names that differ."""
    advice = (
        "Give its stores the names that they have in Java, as "
        "store='KSTREAM-AGGREGATE-STATE-STORE-0000000003', and its repartition topics by name= of "
        "group_by and of repartition"
    )
    if has_others:
        advice += "; delete a topic that neither Java nor another application uses any more"
    if has_absent:
        advice += (
            "; a store without a changelog in Java has logged=False here, and one that Java does "
            "not have is added after the import"
        )
    return advice


def _explain_unused(topology: Topology, others: list[str]) -> Iterator[str]:
    """Yield a sentence for each store here that has the name of an unused changelog."""
    for spec in (each for sub in topology.subtopologies for each in sub.stores):
        if name_changelog_topic(topology.application_id, spec.name) not in others:
            continue
        if spec.source_topic is not None:
            yield (
                f"Store {spec.name!r} is restored from {spec.source_topic!r} here, and has a "
                "changelog in Java: set topology_optimization as it is there"
            )
        else:
            yield f"Store {spec.name!r} has logged=False here, and a changelog in Java"


def _check_partitions(topology: Topology, partition_counts: Mapping[str, int]) -> None:
    """Raise ConfigError for internal topics that need another number of partitions here."""
    of_inputs = {topic: partition_counts[topic] for topic in topology.input_topics}
    wanted = derive_internal_counts(
        topology, topology.derive_partition_counts(of_inputs), partition_counts
    )
    wrong = {topic: needed for topic, needed in wanted.items() if partition_counts[topic] != needed}
    if not wrong:
        return
    named = ", ".join(
        f"internal topic {topic!r} has {format_count(partition_counts[topic], 'partition')} and "
        f"this application needs {needed}"
        for topic, needed in wrong.items()
    )
    found = partition_counts[next(iter(wrong))]
    raise ConfigError(
        f"{named}. Keys would be looked for in other partitions than they were written to. Give "
        f"its steps the partitions that they have in Java, as repartition(partitions={found})"
    )
