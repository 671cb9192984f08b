from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.wire.request_memory import COUNTED_BYTES_MIN, RequestMemory

LIMIT = 10 * COUNTED_BYTES_MIN


class FakeReader:
    """Stands in for a connection: holds bytes and may be read from, or not."""

    def __init__(self, intake: RequestMemory) -> None:
        self.intake = intake
        self.held_bytes = 0
        self.may_read = True

    def close_if_stalled(self, silent_since_ms: int) -> None:
        raise AssertionError("nobody watches")

    def hold(self, held_bytes: int) -> None:
        self.held_bytes = held_bytes
        self.may_read = self.intake.set_held_bytes(self, held_bytes)

    def resume_reading(self) -> None:
        assert not self.may_read
        self.hold(self.held_bytes)
        assert self.may_read


def test_without_a_limit_everybody_is_read_from() -> None:
    intake = RequestMemory(-1)
    readers = [FakeReader(intake) for _ in range(3)]
    for reader in readers:
        reader.hold(1 << 40)
    assert all(reader.may_read for reader in readers)


def test_little_pieces_are_not_counted() -> None:
    intake = RequestMemory(0)
    readers = [FakeReader(intake) for _ in range(3)]
    for reader in readers:
        reader.hold(COUNTED_BYTES_MIN - 1)
    assert all(reader.may_read for reader in readers)
    assert intake.held_bytes == 0


def test_when_one_holds_less_again_the_others_go_on() -> None:
    intake = RequestMemory(LIMIT)
    one, two = FakeReader(intake), FakeReader(intake)
    one.hold(LIMIT)
    two.hold(LIMIT // 2)
    assert not two.may_read
    one.hold(LIMIT // 2)
    assert two.may_read


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.one_of(st.just(0), st.integers(COUNTED_BYTES_MIN, LIMIT)),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_somebody_can_always_go_on_and_beyond_the_limit_nobody_but_the_first(
    steps: list[tuple[int, int, bool]],
) -> None:
    intake = RequestMemory(LIMIT)
    readers = [FakeReader(intake) for _ in range(5)]
    for which, more_bytes, leaves in steps:
        reader = readers[which]
        if leaves:
            intake.release_reader(reader)
            reader.held_bytes, reader.may_read = 0, True
        elif more_bytes == 0:
            reader.hold(reader.held_bytes // 2)
        elif reader.may_read:
            reader.hold(reader.held_bytes + more_bytes)
        counted = [r for r in readers if r.held_bytes >= COUNTED_BYTES_MIN]
        assert intake.held_bytes == sum(r.held_bytes for r in counted)
        if counted:
            assert any(r.may_read for r in counted)
        if intake.held_bytes <= LIMIT:
            assert all(r.may_read for r in readers)
    for reader in readers:
        reader.hold(0)
    assert intake.held_bytes == 0
    assert all(reader.may_read for reader in readers)
