"""Which statements are sent to a database at all."""

from __future__ import annotations

import pytest

from callboard.servers.postgres.statement import first_word, objection


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "SELECT"),
        ("  \n(( SELECT 1))", "SELECT"),
        ("-- a remark\n-- another\r\nvalues (1)", "VALUES"),
        ("/* one /* in another */ still the first */ table t", "TABLE"),
        ("--/*\nshow all", "SHOW"),
        ("(/**/with x as (select 1) table x)", "WITH"),
        ("explain(analyze) select 1", "EXPLAIN"),
        ("", ""),
        ("  -- nothing", ""),
        ("/* never ends", ""),
        ("/* ends */ */", ""),
        ("; select 1", ""),
        ("1", ""),
    ],
)
def test_the_first_word_stands_after_space_comments_and_brackets(sql: str, word: str) -> None:
    assert first_word(sql) == word


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("", "The query is empty."),
        (";", "The query does not begin with a word of SQL."),
        ("select '\0'", "A query cannot contain a NUL character."),
        ("/* select */ drop table t", "it does not execute DROP"),
        ("copy t to program 'id'", "it does not execute COPY"),
        ("selects 1", "it does not execute SELECTS"),
    ],
)
def test_what_does_not_ask_is_refused_with_a_reason(sql: str, said: str) -> None:
    assert said in objection(sql)


@pytest.mark.parametrize(
    "sql", ["select 1", "WITH x AS (SELECT 1) TABLE x", "VALUES (1)", "SHOW all", "EXPLAIN SELECT 1"]
)
def test_what_asks_is_sent(sql: str) -> None:
    assert objection(sql) == ""
