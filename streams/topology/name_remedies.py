"""Find which argument of the DSL gives a store or a repartition topic its name.

An older version's name is kept by giving that argument again. Which one it is follows from the
steps that use the store: some stores are named after their step, and `store=` names another one
there, or none.

    step              store or topic                            named by
    aggregation, ...  <name>                                    store='<name>'
    processor         <name>                                    its Store
    foreign-key join  <name>-subscription-store                 name='<name>'
    suppress          <name>-store                              name='<name>'
    join of streams   <name>-this-join-store, ...               name='<name>'
                      <name> of the left, of the right side     store='<name>', other_store='<name>'
                      <name>-left-shared-join-store             store='<name>', or name='<name>'
    join with grace   <name>-Buffer                             name='<name>'
    group             <application id>-<name>-repartition       name='<name>', or the store's
    repartition       <application id>-<name>-repartition       name='<name>'
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from streams.topology.description import DescribedStep
from streams.topology.name_origin import is_generated_name
from streams.topology.version_index import VersionIndex

DRAIN_REMEDY = (
    "let the old version process it first: stop what writes the inputs, and stop the old version "
    "when its group has no lag"
)
_SHIFT_NOTE = "generated names shift when a step is added above"
_TABLE_STORE_NAME = re.compile(r"^(KSTREAM|KTABLE)-(?!FK-JOIN|SUPPRESS).*STATE-STORE")
"""Matches generated names of stores that `store=` can name."""
_JOIN_NAME = re.compile(
    r"^KSTREAM-(JOIN|OUTER)(THIS|OTHER|SHARED)-\d{10}-store$|^KTABLE-FK-JOIN-SUBSCRIPTION-"
)
"""Matches generated names of joins that the setting `internal_names` can keep."""
_SIDE_STORES = (
    re.compile(r"(.+)-(?:this|other)-join-store"),
    re.compile(r"(.+)-outer-(?:this|other)-join-store"),
    re.compile(r"(.+)-(?:left|outer)-shared-join-store"),
)
"""Match the stores of a join of two streams; a join's name may end in -outer itself."""
_SHARED_STORE = _SIDE_STORES[-1]
_FOREIGN_KEY_TOPIC = re.compile(r"(.+)-subscription-(?:registration|response)-topic")
_SIDE_TOPIC = re.compile(r"(.+)-(?:left|right)-repartition")


class Naming(NamedTuple):
    """Represents the argument that gives a name, and the step that takes it."""

    argument: str
    value: str
    step: str = ""

    def __str__(self) -> str:
        """Return the argument as it is written in a program."""
        if self.argument == "Store":
            return f"name its Store {self.value!r}"
        value = self.value if self.argument == "internal_names" else repr(self.value)
        return f"say {self.argument}={value}" + (f" in {self.step}" if self.step else "")


def find_store_naming(name: str, version: VersionIndex) -> Naming:
    """Return how a store of a version got its name."""
    users = [step for step in version.steps if name in step.stores]
    operators = {step.operator or "" for step in users}
    if any("FK-JOIN-SUBSCRIPTION" in each for each in operators):
        base = name.removesuffix("-subscription-store")
        if base != name:
            return Naming("name", base, "the foreign-key join")
    if users and all("FK-JOIN-SUBSCRIPTION" in each for each in operators):  # no table's own store
        return Naming("internal_names", f"{{new name: {name!r}}}", "App(...)")
    for suffix, word in (("-store", "suppress"), ("-Buffer", "the join with grace")):
        base = name.removesuffix(suffix)
        if base != name and any(step.name == base for step in users):
            return Naming("name", base, word)
    if naming := _find_join_naming(name, users, version.steps):
        return naming
    if users and all("PROCESSOR" in each or "TRANSFORM" in each for each in operators):
        return Naming("Store", name)
    return Naming("store", name)


def _find_join_naming(
    name: str, users: Iterable[DescribedStep], steps: Iterable[DescribedStep]
) -> Naming | None:
    """Return how a store of a join of two streams got its name; None for another store."""
    names = {step.name for step in steps}
    for pattern in _SIDE_STORES:
        found = pattern.fullmatch(name)
        if found and f"{found[1]}-this-windowed" in names:
            return Naming("name", found[1], "the join")
    if found := _SHARED_STORE.fullmatch(name):
        return Naming("store", found[1], "the join")
    for step in users:
        if step.name.endswith("-other-windowed") or "WINDOWEDOTHER" in step.name:
            return Naming("other_store", name, "the join")
    return None


def find_repartition_topic_naming(topic: str, version: VersionIndex) -> Naming:
    """Return how a repartition topic of a version got its name."""
    name = topic.removeprefix(f"{version.application_id}-")
    names = {step.name for step in version.steps}
    if found := _FOREIGN_KEY_TOPIC.fullmatch(name):
        return Naming("name", found[1], "the foreign-key join")
    found = _SIDE_TOPIC.fullmatch(name)
    if found and f"{found[1]}-this-windowed" in names:
        return Naming("name", found[1], "the join")
    base = name.removesuffix("-repartition")
    if base in version.stores:
        return find_store_naming(base, version)
    return Naming("name", base, "the step that makes it")


def can_name_by_store_argument(name: str) -> bool:
    """Return whether `store=` names a store of this generated name.

    That of a join of streams, of a foreign-key join and of suppress is named by the step's `name=`.
    """
    return _TABLE_STORE_NAME.search(name) is not None


def describe_store_remedy(name: str, version: VersionIndex) -> str:
    """Return the advice on how to keep the name of a store of a version."""
    if not is_generated_name(name):
        return f"to keep what there is, {find_store_naming(name, version)}"
    if _JOIN_NAME.search(name):
        return _describe_join_remedy(name)
    if not can_name_by_store_argument(name):
        return f"name the step with name='...': {_SHIFT_NOTE}; until then add steps below it only"
    return (
        f"name the store with store='...': {_SHIFT_NOTE}; to keep what there is, say store={name!r}"
    )


def describe_topic_remedy(topic: str, version: VersionIndex) -> str:
    """Return the advice on how to keep the name of a repartition topic of a version."""
    name = topic.removeprefix(f"{version.application_id}-")
    if _JOIN_NAME.search(name):
        return _describe_join_remedy(name)
    if not is_generated_name(topic):
        return f"to keep it, {find_repartition_topic_naming(topic, version)}; else {DRAIN_REMEDY}"
    base = name.removesuffix("-repartition")
    if base not in version.stores:
        return (
            f"name the step with name='...': {_SHIFT_NOTE}; to keep what there is, call "
            f"repartition(name={base!r}) before it; else {DRAIN_REMEDY}"
        )
    return (
        f"name the step with name='...', or the store that it is named after with store='...': "
        f"{_SHIFT_NOTE}; else {DRAIN_REMEDY}"
    )


def _describe_join_remedy(name: str) -> str:
    """Return the advice on how to keep a generated name of a join, for its new version."""
    return (
        f"name the step with name='...': {_SHIFT_NOTE}; to keep what there is, say "
        f"internal_names={{new name: {name!r}}} in App(...)"
    )
