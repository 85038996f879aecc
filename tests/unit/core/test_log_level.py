import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.log_level import guess_level


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("", ""),
        ("   ", ""),
        ("Server listening on port 3000", ""),
        ("Found 0 errors in 12 files", ""),
        ("no error was found", ""),
        ("handled the warning politely", ""),
        ("information desk opened", ""),
        ("logging in as maria", ""),
        ("Secure MCP Filesystem Server running on stdio", ""),
        ("ERROR something broke", "error"),
        ("error: something broke", "error"),
        ("Error: Cannot find module 'x'", "error"),
        ("  [ERROR] something broke", "error"),
        ("[warn] careful", "warning"),
        ("<info> hello", "info"),
        ("2025-01-01 12:00:00,123 - root - WARNING - disk is nearly full", "warning"),
        ("2025-01-01T12:00:00Z INFO  starting", "info"),
        ("2025-01-01 12:00:00 | DEBUG    | app:main:3 - hello", "debug"),
        ("INFO:     Uvicorn running on http://127.0.0.1:8000", "info"),
        ('time="2025-01-01T12:00:00Z" level=warning msg="no config"', "warning"),
        ('{"level":"error","msg":"gone"}', "error"),
        ('{"level":30,"time":1,"msg":"hello"}', "info"),
        ('{"level":60,"time":1,"msg":"dead"}', "error"),
        ('{"time":1,"severity":"NOTICE","message":"x"}', "info"),
        ("I0102 12:00:00.000000       1 main.go:10] hello", "info"),
        ("E0102 12:00:00.000000       1 main.go:10] broken", "error"),
        ("npm ERR! code ENOENT", "error"),
        ("npm error code E404", "error"),
        ("npm warn deprecated inflight@1.0.6", "warning"),
        ("npm notice New version", "info"),
        ("npm WARN deprecated inflight@1.0.6", "warning"),
        ("Traceback (most recent call last):", "error"),
        ('  File "server.py", line 7, in <module>', ""),
        ('KeyError: "EXAMPLE_API_KEY"', "error"),
        ("json.decoder.JSONDecodeError: Expecting value", "error"),
        ("KeyboardInterrupt", "error"),
        ("TypeError [ERR_INVALID_ARG_TYPE]: The argument", "error"),
        ("java.lang.IllegalStateException: no", "error"),
        ("panic: runtime error: index out of range", "error"),
        ("thread 'main' panicked at src/main.rs:2:5:", "error"),
        ("DEBUG " + "z" * 1000, "debug"),
        ("z" * 1000 + " ERROR", ""),
        ("--- a separator ---", ""),
    ],
)
def test_a_line_is_taken_for_what_it_looks_like(line: str, level: str):
    assert guess_level(line) == level


@given(st.text(max_size=400))
def test_any_line_has_an_answer(line: str):
    assert guess_level(line) in ("", "debug", "info", "warning", "error")
