import io
import time

import pytest

from callboard.commands.terminal import Cell, Terminal, clean, clock, cut, duration, pad, size, span, width


class Screen(io.StringIO):
    """A stream where a person looks on."""

    def isatty(self) -> bool:
        return True


def test_columns_align_also_with_wide_and_combining_characters() -> None:
    out = io.StringIO()
    rows = [("日本語", "ready", "x"), ("e\u0301a", "stopped", ""), ("plain", "failed", "a  b\n c")]
    Terminal(out, io.StringIO()).table(("NAME", "STATE", "REMARK"), rows)
    assert out.getvalue().splitlines() == [
        "NAME    STATE    REMARK",
        "日本語  ready    x",
        "e\u0301a      stopped",
        "plain   failed   a b c",
    ]


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Screen(), {}, True),
        (Screen(), {"NO_COLOR": "1"}, False),
        (Screen(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
    ids=["screen", "no-color", "dumb", "pipe"],
)
def test_colour_only_where_it_is_wanted(
    stream: io.StringIO, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Terminal(stream, io.StringIO()).table(("STATE",), [(Cell("ready", "fine"),)])
    assert ("\x1b[32mready\x1b[0m" in stream.getvalue()) is coloured
    assert "ready" in stream.getvalue()


def test_last_column_is_cut_on_a_narrow_screen_and_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")
    row = ("name", "a sentence that is longer than the screen")
    screen, pipe = Screen(), io.StringIO()
    Terminal(screen, io.StringIO()).table(("NAME", "REMARK"), [row])
    Terminal(pipe, io.StringIO()).table(("NAME", "REMARK"), [row])
    assert screen.getvalue().splitlines()[1] == "name  a sentence that is long…"
    assert pipe.getvalue().splitlines()[1].endswith("than the screen")


def test_text_of_a_server_cannot_steer_the_terminal() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\ta\x08b\x9b1m") == (
        "red xlink\ta\ufffdb\ufffd1m"
    )
    assert clean("10 %\r20 %\r\n") == "10 % 20 % "


def test_tools_text_passes_untouched_into_a_pipe_and_cleaned_to_a_screen() -> None:
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        Terminal(stream, io.StringIO()).raw("a\x1b[2Jb\nc")
    assert screen.getvalue() == "ab\nc\n"
    assert pipe.getvalue() == "a\x1b[2Jb\nc\n"


def test_error_stands_on_stderr_with_its_fix() -> None:
    out, err = io.StringIO(), io.StringIO()
    Terminal(out, err).error("It failed.", "Mend it.")
    assert (out.getvalue(), err.getvalue()) == ("", "callboard: It failed.\n  Mend it.\n")


def test_pairs_leave_out_what_is_empty_and_indent_further_lines() -> None:
    out = io.StringIO()
    Terminal(out, io.StringIO()).pairs([("name", "x"), ("nothing", ""), ("last exit", "status 1\nline")])
    assert out.getvalue() == "name:      x\nlast exit: status 1\n           line\n"


def test_json_of_a_stream_is_one_line_each() -> None:
    out = io.StringIO()
    terminal = Terminal(out, io.StringIO())
    terminal.json({"a": "ä"}, indent=0)
    terminal.json([])
    assert out.getvalue() == '{"a":"ä"}\n[]\n'


def test_widths() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "👍", "")] == [3, 4, 1, 2, 0]
    assert pad("日", 4) == "日  "
    assert [cut("日本語", columns) for columns in (6, 5, 4, 3)] == ["日本語", "日本…", "日…", "日…"]


def test_numbers_for_people() -> None:
    assert [span(seconds) for seconds in (-1, 59, 61, 3700, 90_000)] == ["0 s", "59 s", "1 m 1 s", "1 h 1 m", "1 d 1 h"]
    assert [duration(ms) for ms in (None, 1.24, 99.6, 1500.0, 61_000.0)] == ["", "1.2 ms", "100 ms", "1.5 s", "1 m 1 s"]
    assert [size(count) for count in (0, 999, 1000, 12_345, 5_000_000, 3_000_000_000)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "12 kB",
        "5.0 MB",
        "3.0 GB",
    ]
    now = time.time()
    assert len(clock(now)) == 8
    assert clock(now - 3 * 86400).startswith(time.strftime("%Y-%m-%d", time.localtime(now - 3 * 86400)))
