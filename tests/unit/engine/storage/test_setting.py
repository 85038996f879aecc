"""The setting ``storage``: the environment above the roster, and references."""

from collections.abc import Mapping

import pytest

from callboard.core.errors import CallboardError
from callboard.core.roster_parse import parse_roster
from callboard.core.roster_yaml import RosterError
from callboard.engine.storage.setting import find_address, setting_notices, share_conversations


async def no_secrets(names: frozenset[str]) -> Mapping[str, str]:
    """A store that has none."""
    return {}


async def one_secret(names: frozenset[str]) -> Mapping[str, str]:
    """A store with a password that an address cannot hold as it is."""
    assert names == {"db"}
    return {"db": "p@ss/w\u00f6rd"}


async def test_nothing_is_set() -> None:
    assert await find_address("", {}, no_secrets) == ("", frozenset())


async def test_the_environment_stands_above_the_roster() -> None:
    address, _ = await find_address("postgresql://a/b", {"CALLBOARD_STORAGE": "postgres://c/d"}, no_secrets)
    assert address == "postgres://c/d"


async def test_references_are_escaped_and_masked() -> None:
    text = "postgresql://u:${secret:db}@${env:HOST}/callboard"
    address, hidden = await find_address(text, {"HOST": "db.example"}, one_secret)
    assert address == "postgresql://u:p%40ss%2Fw%C3%B6rd@db.example/callboard"
    assert "p@ss/w\u00f6rd" in hidden
    assert "db.example" not in hidden


async def test_a_reference_may_be_the_whole_address() -> None:
    found = await find_address("${env:DATABASE_URL}", {"DATABASE_URL": "postgresql://u:p%40@h/d"}, no_secrets)
    assert found == ("postgresql://u:p%40@h/d", {"p@"})


async def test_passwords_in_the_query_are_masked_too() -> None:
    text = "postgresql://u:one@h/d?sslmode=require&password=t%20wo+2&sslpassword=three"
    _, hidden = await find_address(text, {}, no_secrets)
    assert hidden == {"one", "t wo+2", "t wo 2", "three"}


@pytest.mark.parametrize(
    ("text", "environment", "code"),
    [
        ("postgresql://u:${secret:db}@h/d", {}, "secret-missing"),
        ("postgresql://u:${env:PASSWORD}@h/d", {}, "env-unset"),
        ("${env:URL}", {"URL": "mysql://h/d"}, "storage-invalid"),
        ("", {"CALLBOARD_STORAGE": "sqlite:///x"}, "storage-invalid"),
        ("", {"CALLBOARD_STORAGE": "postgresql://${HOST}/x"}, "storage-invalid"),
    ],
)
async def test_what_cannot_be_is_an_error(text: str, environment: dict[str, str], code: str) -> None:
    with pytest.raises(CallboardError) as failed:
        await find_address(text, environment, no_secrets)
    assert failed.value.code == code


def test_the_roster_says_where_it_is_wrong() -> None:
    assert parse_roster("storage: postgresql://u@h/d").settings.storage == "postgresql://u@h/d"
    with pytest.raises(RosterError, match="Line 1, column 10: storage must be the address of a PostgreSQL database"):
        parse_roster("storage: mysql://h/d")
    with pytest.raises(RosterError, match=r"storage .*\$\{HOST\} is not known here"):
        parse_roster("storage: postgresql://${HOST}/d")


def test_conversations_of_agents_go_to_the_database() -> None:
    roster = parse_roster("""
servers:
  usual: {agent: a.py:a}
  kept: {agent: a.py:a, persist: true}
  own: {agent: a.py:a, store: postgresql://elsewhere/d}
  forgetful: {agent: a.py:a, persist: false}
  stateless: {agent: a.py:a, stateless: true}
  no-agent: {command: x}
""")
    shared = share_conversations(roster, "postgresql://u:${x@h/d").servers
    stores = {name: getattr(entry, "store", None) for name, entry in shared.items()}
    assert stores == {
        "usual": "postgresql://u:$${x@h/d",
        "kept": "postgresql://u:$${x@h/d",
        "own": "postgresql://elsewhere/d",
        "forgetful": "",
        "stateless": "",
        "no-agent": None,
    }


def test_a_setting_that_is_not_in_force_is_told() -> None:
    assert setting_notices("", "") == []
    (notice,) = setting_notices("", "postgresql://host/db")
    assert notice.code == "storage-changed"
    assert "postgresql" not in notice.message, "it may hold a password"
