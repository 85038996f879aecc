"""Wire names: valid, unique, stable, and the way back."""

import re

from hypothesis import given
from hypothesis import strategies as st

from callboard.core.names import MAX_LENGTH, WireNames

VALID = re.compile(r"[A-Za-z0-9_-]{1,47}")
servers = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True)
tools = st.text(max_size=90) | st.text("aAbB_-.é", max_size=6)
owners = st.lists(st.tuples(servers | st.sampled_from(["a", "a_", "a__b", "a__b_", "b"]), tools), max_size=12)


def one_case_each(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without servers that differ only by case, which a roster cannot hold."""
    spelling: dict[str, str] = {}
    return [(spelling.setdefault(server.casefold(), server), tool) for server, tool in pairs]


def test_simple_names_stay_readable() -> None:
    names = WireNames([("local-tools", "word_count"), ("github", "create-issue")])
    assert names.wire("local-tools", "word_count") == "local-tools__word_count"
    assert names.owner("github__create-issue") == ("github", "create-issue")
    assert names.owner("github__nope") is None


def test_the_longest_name_fits_a_client_with_its_prefix() -> None:
    names = WireNames([("s" * 64, "t" * 128), ("files", "t" * 128)])
    for server in ("s" * 64, "files"):
        assert len("mcp__callboard__" + names.wire(server, "t" * 128)) <= 63
    assert names.wire("files", "t" * 128).startswith("files__ttttttttt")


def test_cleaned_names_carry_a_hash() -> None:
    wire = WireNames([("s", "dotted.tool/name")]).wire("s", "dotted.tool/name")
    assert re.fullmatch(r"s__dotted_tool_name_[0-9a-f]{8}", wire)


def test_names_that_look_alike_are_kept_apart() -> None:
    pairs = [
        ("s", "caf\u00e9"),
        ("s", "cafe\u0301"),
        ("s", "Echo"),
        ("s", "echo"),
        ("s", "a.b"),
        ("s", "a/b"),
        ("s", "a_b"),
        ("s__x", "y"),
        ("s", "x__y"),
        ("s_", "x"),
        ("s", "_x"),
        ("s", ""),
    ]
    names = WireNames(pairs)
    wires = [names.wire(*pair) for pair in pairs]
    assert len({wire.casefold() for wire in wires}) == len(pairs)
    assert names.wire("s", "a_b") == "s__a_b"
    assert names.wire("s", "x__y") == "s__x__y"
    assert names.wire("s", "_x") == "s___x"


def test_a_tool_named_like_another_ones_hash_keeps_its_name() -> None:
    hashed = WireNames([("s", "a.b")]).wire("s", "a.b")
    thief = ("s", hashed.removeprefix("s__"))
    names = WireNames([("s", "a.b"), thief])
    assert names.wire(*thief) == hashed
    assert names.owner(hashed) == thief
    assert names.owner(names.wire("s", "a.b")) == ("s", "a.b")


@given(owners)
def test_names_are_valid_unique_and_lead_back(pairs: list[tuple[str, str]]) -> None:
    pairs = one_case_each(pairs)
    names = WireNames(pairs)
    wires = {pair: names.wire(*pair) for pair in pairs}
    assert all(VALID.fullmatch(wire) and len(wire) <= MAX_LENGTH for wire in wires.values())
    assert len({wire.casefold() for wire in wires.values()}) == len(set(pairs))
    assert all(names.owner(wire) == pair for pair, wire in wires.items())


@given(owners, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_other_servers_or_on_order(pairs: list[tuple[str, str]], random: object) -> None:
    pairs = one_case_each(pairs)
    whole = WireNames(pairs)
    shuffled = sorted(pairs, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert all(WireNames(shuffled).wire(*pair) == whole.wire(*pair) for pair in pairs)
    for server in {server for server, _ in pairs}:
        own = [pair for pair in pairs if pair[0] == server]
        alone = WireNames(own)
        assert all(alone.wire(*pair) == whole.wire(*pair) for pair in own)
