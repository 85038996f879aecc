"""Long values in a keyring of short entries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.engine.secrets.parts import LIMIT, delete_parts, read_parts, write_parts


class Entries(dict[str, str]):
    """A keyring that refuses long entries and breaks off after some writes."""

    writes_left = -1

    def put(self, name: str, value: str) -> None:
        if self.writes_left == 0:
            raise OSError("broken off")
        self.writes_left -= self.writes_left > 0
        assert len(value.encode("utf-16-le")) <= 2 * LIMIT
        self[name] = value

    def write(self, name: str, value: str) -> None:
        write_parts(name, value, self.get, self.put, self.__delitem__)

    def read(self, name: str) -> str | None:
        return read_parts(name, self.get)


@given(
    st.lists(
        st.text(max_size=4 * LIMIT) | st.sampled_from(["x" * 5000, "😀" * 2000, "callboard-parts:a:1:"]), max_size=5
    )
)
def test_what_was_written_last_is_read_and_nothing_else_stays(values: list[str]) -> None:
    entries = Entries()
    for value in values:
        entries.write("name", value)
        assert entries.read("name") == value
    delete_parts("name", entries.get, lambda name: entries.pop(name, None))
    assert entries == {}


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_write_that_breaks_off_leaves_the_old_value(writes: int) -> None:
    for old in ("", "short", "a" * 3000):
        entries = Entries()
        if old:
            entries.write("name", old)
        entries.writes_left = writes
        with pytest.raises(OSError, match="broken off"):
            entries.write("name", "b" * 4000)
        entries.writes_left = -1
        assert entries.read("name") == (old or None)
        entries.write("name", "c" * 4000)
        assert entries.read("name") == "c" * 4000


def test_a_missing_or_foreign_part_reads_as_absent() -> None:
    entries = Entries()
    entries.write("name", "a" * 3000)
    part = next(name for name in entries if name != "name")
    kept = entries.pop(part)
    assert entries.read("name") is None
    entries[part] = "x" * len(kept)
    assert entries.read("name") is None
