import os
import subprocess
from pathlib import Path

import pytest

from callboard.system.shell_path import login_shell, merge, question, read_answer, usual_folders


def test_the_answer_is_found_among_what_start_files_print():
    output = b"Welcome!\nfortune: callboard\ncallboard-path-begins\n/a:/b c:/d\ncallboard-path-ends\nbye\n"
    assert read_answer(output) == "/a:/b c:/d"


def test_text_without_a_line_end_before_the_mark_does_no_harm():
    assert read_answer(b"prompt> callboard-path-begins\r\n/a:/b\r\ncallboard-path-ends") == "/a:/b"


def test_relative_folders_of_the_answer_are_left_out():
    assert read_answer(b"callboard-path-begins\n/a:.::bin:/b\ncallboard-path-ends\n") == "/a:/b"


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"callboard-path-begins\n/a",
        b"/a\ncallboard-path-ends",
        b"callboard-path-begins\n\ncallboard-path-ends\n",
        b"callboard-path-begins\n/a\n/b\ncallboard-path-ends\n",
    ],
)
def test_what_is_no_whole_answer_is_none(output: bytes):
    assert read_answer(output) is None


def test_a_program_from_a_desktop_looks_in_the_order_of_the_shell():
    assert merge("/usr/bin:/bin", "/home/x/node/bin:/usr/bin:/bin", ["/home/x/.cargo/bin"]) == (
        "/home/x/node/bin:/usr/bin:/bin:/home/x/.cargo/bin"
    )


def test_a_program_from_a_terminal_keeps_what_that_put_in_front():
    assert merge("/venv/bin:/usr/bin:/bin", "/usr/bin:/bin", []) == "/venv/bin:/usr/bin:/bin"


def test_without_an_answer_our_own_path_and_the_usual_folders_remain():
    assert merge("/usr/bin::/usr/bin", None, ["/opt/x", "/usr/bin"]) == "/usr/bin:/opt/x"


def test_usual_folders_are_those_that_exist(tmp_path: Path):
    for folder in (".local/bin", ".cargo/bin", ".volta/bin", "my-mise/shims"):
        (tmp_path / folder).mkdir(parents=True)
    found = usual_folders(tmp_path, {"MISE_DATA_DIR": str(tmp_path / "my-mise")})
    assert [str(tmp_path / name) for name in (".local/bin", ".cargo/bin", ".volta/bin", "my-mise/shims")] == [
        folder for folder in found if folder.startswith(str(tmp_path))
    ]


@pytest.mark.parametrize(
    ("aliases", "expected"),
    [
        ({"default": "20"}, "v20.11.0"),
        ({"default": "v18.2.0"}, "v18.2.0"),
        ({"default": "mine", "mine": "18"}, "v18.2.0"),
        ({"default": "lts/*"}, "v20.11.0"),
        ({"default": "default"}, "v20.11.0"),
        ({}, "v20.11.0"),
    ],
)
def test_the_node_version_that_nvm_takes_by_default(tmp_path: Path, aliases: dict[str, str], expected: str):
    for version in ("v9.0.0", "v18.2.0", "v20.9.1", "v20.11.0"):
        (tmp_path / ".nvm/versions/node" / version / "bin").mkdir(parents=True)
    (tmp_path / ".nvm/alias").mkdir()
    for name, text in aliases.items():
        (tmp_path / ".nvm/alias" / name).write_text(text + "\n")
    assert str(tmp_path / ".nvm/versions/node" / expected / "bin") in usual_folders(tmp_path, {})


def test_there_is_no_shell_to_ask_where_logging_in_is_not_allowed():
    assert login_shell({"SHELL": "/usr/sbin/nologin"}) is None
    assert login_shell({"SHELL": "/no/such/shell"}) is None
    assert login_shell({"SHELL": "/bin/sh"}) == Path("/bin/sh")
    assert login_shell({}) is not None


@pytest.mark.parametrize("name", ["sh", "bash", "zsh", "fish", "tcsh"])
def test_real_shells_answer(name: str, tmp_path: Path):
    shell = Path("/bin") / name
    if not shell.exists():
        pytest.skip(f"{name} is not installed")
    (tmp_path / ".profile").write_text('PATH="$PATH:/from/profile"\nexport PATH\necho Hello\n')
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(question(shell), env=environment, cwd=tmp_path, capture_output=True, timeout=20, check=False)
    folders = (read_answer(done.stdout) or "").split(os.pathsep)
    assert "/usr/bin" in folders
    assert "/from/profile" in folders or name not in ("sh", "bash")
