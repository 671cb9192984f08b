"""Set how many examples a property is tried with: all of them in CI, a fifth at a desk.

`pytest --hypothesis-profile=ci` tries all of them anywhere.
"""

from __future__ import annotations

from hypothesis import settings

_AT_A_DESK = 5


def examples(number: int) -> settings:
    """Return settings with `number` examples in the profile "ci", and a fifth of them otherwise."""
    thorough = settings.get_current_profile_name() == "ci"
    return settings(max_examples=number if thorough else number // _AT_A_DESK)
