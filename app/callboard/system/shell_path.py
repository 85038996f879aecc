"""The PATH that a person's programs expect: what the login shell would say, and the folders that installers use.

A program started from a desktop gets a bare PATH; what the shell's start files add is missing. Here is how to ask the
shell and how to read its answer; running it is up to the caller (it may hang, and it must be ended as a whole).
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_BEGIN = "callboard-path-begins"
_END = "callboard-path-ends"
# What keeps start files from asking questions, drawing prompts or opening multiplexers.
QUIET = {
    "TERM": "dumb",
    "DISABLE_AUTO_UPDATE": "true",
    "DISABLE_UPDATE_PROMPT": "true",
    "ZSH_TMUX_AUTOSTART": "false",
    "POWERLEVEL9K_INSTANT_PROMPT": "off",
}


def login_shell(environ: Mapping[str, str]) -> Path | None:
    """The person's shell, or None where there is none to ask."""
    if os.name != "posix":
        return None
    named = environ.get("SHELL", "")
    if not named:
        import pwd

        try:
            named = pwd.getpwuid(os.getuid()).pw_shell
        except KeyError:
            named = ""
    shell = Path(named or "/bin/sh")
    return None if shell.name in ("false", "nologin", "true", "sync") or not os.access(shell, os.X_OK) else shell


def question(shell: Path) -> list[str]:
    """The command that makes ``shell`` read its start files and print its PATH between two marks."""
    # Nothing here but what all shells understand alike; printenv, because some print a list for $PATH.
    script = f"echo {_BEGIN}; /usr/bin/env printenv PATH; echo {_END}"
    if shell.name in ("csh", "tcsh"):
        return [str(shell), "-ic", script]
    if shell.name in ("bash", "zsh", "fish", "ksh", "mksh"):
        # Interactive too: version managers often stand in the file that only interactive shells read.
        return [str(shell), "-i", "-l", "-c", script]
    return [str(shell), "-l", "-c", script]


def read_answer(output: bytes) -> str | None:
    """The PATH in what the shell printed, or None. Start files may print before, after and without a line end."""
    text = output.decode(errors="surrogateescape")
    begin = text.rfind(_BEGIN)
    end = text.find(_END, begin)
    if begin < 0 or end < 0:
        return None
    answer = text[begin + len(_BEGIN) : end].strip("\r\n")
    path = os.pathsep.join(folder for folder in answer.split(os.pathsep) if Path(folder).is_absolute())
    return path if "\n" not in path and path else None


def merge(own: str, shell: str | None, usual: Iterable[str]) -> str:
    """One PATH, each folder once: what only our own has, then the shell's in its order, then the usual folders.

    So a program started in a terminal keeps what that terminal put in front, and one started from a desktop looks in
    the same order as the person's terminal does.
    """
    own_folders = _folders(own)
    shell_folders = _folders(shell or "")
    known = set(shell_folders)
    extra = [folder for folder in own_folders if folder not in known]
    return os.pathsep.join(dict.fromkeys([*extra, *shell_folders, *usual]))


def usual_folders(home: Path, environ: Mapping[str, str]) -> list[str]:
    """Folders that exist and in which installers and version managers put programs."""
    if os.name != "posix":
        return []
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    candidates = [
        home / ".local" / "bin",
        home / "bin",
        Path(environ.get("CARGO_HOME") or home / ".cargo") / "bin",
        *_nvm_default(Path(environ.get("NVM_DIR") or home / ".nvm")),
        Path(environ.get("VOLTA_HOME") or home / ".volta") / "bin",
        Path(environ.get("MISE_DATA_DIR") or data / "mise") / "shims",
        Path(environ.get("ASDF_DATA_DIR") or home / ".asdf") / "shims",
        Path(environ.get("PYENV_ROOT") or home / ".pyenv") / "shims",
        Path(environ.get("BUN_INSTALL") or home / ".bun") / "bin",
        home / ".deno" / "bin",
        home / ".rd" / "bin",
        Path(environ.get("GOPATH") or home / "go") / "bin",
        data / "pnpm",
        Path("/home/linuxbrew/.linuxbrew/bin"),
        Path("/usr/local/bin"),
        Path("/snap/bin"),
    ]
    if sys.platform == "darwin":
        candidates += [Path("/opt/homebrew/bin"), Path("/opt/homebrew/sbin"), Path("/opt/local/bin")]
    return [str(folder) for folder in candidates if folder.is_dir()]


def _nvm_default(nvm: Path) -> list[Path]:
    """The bin folder of the node version that nvm takes by default, else of the newest one."""
    versions = {
        folder.name.removeprefix("v"): folder / "bin"
        for folder in (nvm / "versions" / "node").glob("v*")
        if (folder / "bin").is_dir()
    }
    if not versions:
        return []
    alias = "default"
    for _ in range(5):  # an alias may name another alias
        try:
            text = (nvm / "alias" / alias).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            break
        alias = text or alias
    wanted = alias.removeprefix("v")
    fitting = [name for name in versions if name == wanted or name.startswith(wanted + ".")]
    return [versions[max(fitting or versions, key=_version)]]


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in name.split("."))


def _folders(path: str) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if folder]
