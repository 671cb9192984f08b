"""Say in one line what is wrong with the arguments of a command, and what was probably meant.

typer prints the usage, a hint and a box of several lines, which a log or a script's error handling
can't show as one message. `--help` is left to typer.
"""

from __future__ import annotations

import difflib
from typing import Any

import typer

UsageError: Any = typer.BadParameter.__mro__[1]
"""typer's error for wrong arguments, which it exports no name of: the base of `BadParameter`."""
CommandError: Any = UsageError.__mro__[1]
"""typer's error for all that a command shows to its user, the base of `UsageError`."""


def describe_usage_error(error: Any) -> str:
    """Return what is wrong with the arguments, the nearest option, and where all are listed."""
    context = getattr(error, "ctx", None)
    wrong_option = getattr(error, "option_name", None)
    possibilities = getattr(error, "possibilities", None)
    said = error.message if possibilities else error.format_message()
    said = " ".join(said.split()).rstrip(".")
    if context is None:
        return said
    if wrong_option and (
        hint := _explain_how_to_give_setting(wrong_option, _list_options(context))
    ):
        return f"{said}: {hint}"
    if wrong_option and not said.endswith("?"):
        nearest = find_nearest_option(wrong_option, _list_options(context))
        if nearest is not None:
            said += f": did you mean {nearest}?"
    joint = "" if said.endswith("?") else ":"
    return f"{said}{joint} `{context.command_path} --help` lists what there is"


def _explain_how_to_give_setting(wrong_option: str, options: list[str]) -> str:
    """Return how the setting of an application is given that an option names; empty for others."""
    from streams.settings.config import StreamsConfig  # it imports much, and there is an error
    from streams.settings.setting_origins import ENVIRONMENT_PREFIX

    name = wrong_option.strip("-").replace("-", "_").lower()
    if name not in StreamsConfig.model_fields:
        return ""
    ways = [f"--set {name}=VALUE"] if "--set" in options else []
    ways.append(f"{ENVIRONMENT_PREFIX}{name.upper()}=VALUE in the environment")
    if "--config" in options:
        ways.append(f"the file of --config ({name} = ...)")
    return f"{name} is a setting, which is given by {', or by '.join(ways)} (docs/settings.md)"


def find_nearest_option(wrong_option: str, options: list[str]) -> str | None:
    """Return the option that was probably meant: spelt alike, or with a word of it.

    Returns None if none is near.
    """
    alike = difflib.get_close_matches(wrong_option, options, n=1)
    begun = [each for each in options if each.startswith(wrong_option)]
    words = _stem_words(wrong_option)
    sharing = [each for each in options if words & _stem_words(each)]
    return next(iter([*alike, *begun, *sharing]), None)


def _stem_words(option: str) -> set[str]:
    """Return the words of an option's name, without an s at their ends."""
    return {word.removesuffix("s") for word in option.strip("-").split("-")}


def _list_options(context: Any) -> list[str]:
    """Return the long names of the options that a command has."""
    named = [name for parameter in context.command.get_params(context) for name in parameter.opts]
    return [name for name in named if name.startswith("--")]
