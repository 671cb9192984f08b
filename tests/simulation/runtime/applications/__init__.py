"""Provide applications with input and a model of their own; those of `topologies` share one."""

from __future__ import annotations

from tests.simulation.runtime.applications.application import Application, Input
from tests.simulation.runtime.applications.foreign import Foreign
from tests.simulation.runtime.applications.handled import Handled
from tests.simulation.runtime.applications.looked_up import LookedUp
from tests.simulation.runtime.applications.merged import Merged
from tests.simulation.runtime.applications.refused import Refused
from tests.simulation.runtime.applications.versioned import Versioned

APPLICATIONS: dict[str, type[Application]] = {
    "foreign": Foreign,
    "merged": Merged,
    "versioned": Versioned,
    "handled": Handled,
    "looked up": LookedUp,
    "refused": Refused,
}

__all__ = ["APPLICATIONS", "Application", "Input"]
