"""Where the program keeps its files. ``CALLBOARD_HOME`` moves all of them under one folder."""

import os
from dataclasses import dataclass
from pathlib import Path

APP = "callboard"


@dataclass(frozen=True)
class Paths:
    """Folders and files of one installation. Nothing is created by looking; see :meth:`create`."""

    config: Path
    state: Path
    logs: Path
    runtime: Path
    data: Path

    @property
    def roster(self) -> Path:
        """The list of servers, edited by hand or from the window."""
        return self.config / "roster.yaml"

    @property
    def engine_file(self) -> Path:
        """Address and admin token of the running engine, mode 0600."""
        return self.runtime / "engine.json"

    @property
    def engine_lock(self) -> Path:
        """Held by the running engine for its whole life."""
        return self.runtime / "engine.lock"

    @property
    def window_socket(self) -> Path:
        """Where a second start of the window reaches the first."""
        return self.runtime / "window.sock"

    @property
    def clients_file(self) -> Path:
        """Tokens of the clients, mode 0600 (only digests are kept where the keyring holds the token)."""
        return self.state / "clients.json"

    @property
    def calls_db(self) -> Path:
        """The call log."""
        return self.state / "calls.sqlite3"

    @property
    def bundles(self) -> Path:
        """Unpacked bundles, a folder for each."""
        return self.data / "bundles"

    @property
    def window_settings(self) -> Path:
        """Geometry and columns of the window."""
        return self.state / "window.ini"

    def create(self) -> None:
        """Make the folders, readable by the owner alone."""
        for folder in (self.config, self.state, self.logs, self.runtime, self.data):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def find_paths() -> Paths:
    """The folders for this person: under ``CALLBOARD_HOME`` if set, else the platform's own places."""
    home = os.environ.get("CALLBOARD_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Paths(*(root / name for name in ("config", "state", "logs", "runtime", "data")))
    import platformdirs  # 20 ms, and not needed where CALLBOARD_HOME is set

    dirs = platformdirs.PlatformDirs(APP, appauthor=False)
    return Paths(
        config=Path(dirs.user_config_dir),
        state=Path(dirs.user_state_dir),
        logs=Path(dirs.user_log_dir),
        runtime=_runtime_dir(),
        data=Path(dirs.user_data_dir),
    )


def _runtime_dir() -> Path:
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / APP
    if os.name == "posix":
        import tempfile  # 10 ms, and needed only here

        return Path(tempfile.gettempdir()) / f"{APP}-{os.getuid()}"
    import platformdirs

    return Path(platformdirs.user_runtime_dir(APP, appauthor=False))
