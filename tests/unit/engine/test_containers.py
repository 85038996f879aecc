import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from callboard.core.health import State
from callboard.core.launch import LocalLaunch
from callboard.core.roster import LocalEntry
from callboard.engine.containers import Containers
from callboard.engine.process import ChildProcess
from callboard.engine.supervisor import Supervisor
from tests.support.processes import is_running, odd_server, until
from tests.support.world import World

RUNNER = Path(__file__).parents[2] / "support" / "servers" / "container_runner.py"


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called docker, found by its name; returns the folder of its daemon."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(f"#!{sys.executable} -SE\n" + RUNNER.read_text())
    program.chmod(0o755)
    shutil.copy2(program, folder / "podman")
    daemon = tmp_path / "daemon"
    daemon.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", str(daemon))
    monkeypatch.setitem(ChildProcess.stop.__kwdefaults__, "grace", 0.3)  # stops need less than in earnest
    return daemon


def in_container(*options: str, server: tuple[str, ...] = ()) -> LocalEntry:
    """A server in a container."""
    return LocalEntry(command="docker", args=["run", "--rm", "-i", *options, "image", *odd_server(*server)])


def containers(daemon: Path) -> dict[str, int]:
    """What the daemon was ever told to run: id and pid."""
    file = daemon / "started"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return {line.split()[0]: int(line.split()[1]) for line in lines}


class Containered(World):
    """A supervisor that knows of containers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.containers = Containers(folder / "state" / "containers")
        self.supervisor = Supervisor(
            self.connect,
            self.output,
            self.lookup,
            self.environment,
            self.on_change,
            lambda name, upstream: None,
            leftovers=self.leftovers,
            containers=self.containers,
        )

    async def close(self) -> None:
        """End everything."""
        await self.supervisor.close()
        self.output.close()

    @property
    def notes(self) -> list[str]:
        """What is noted on the disk."""
        return sorted(file.name for file in (self.folder / "state" / "containers").glob("*"))


async def test_a_container_that_does_not_end_by_itself_is_removed(docker: Path, tmp_path: Path):
    world = Containered(tmp_path)
    world.apply(odd=in_container(server=("--ignore-term",)))
    await world.supervisor.upstream("odd")
    ((identity, pid),) = containers(docker).items()
    assert is_running(pid)
    assert len(world.notes) == 2
    world.supervisor.stop("odd")
    await world.reach(State.STOPPED)
    assert not is_running(pid)
    assert (docker / "removed").read_text().split() == [identity]
    assert world.notes == []
    await world.close()


async def test_a_container_that_is_gone_already_is_no_fault(docker: Path, tmp_path: Path):
    world = Containered(tmp_path)
    world.apply(odd=in_container())
    await world.supervisor.upstream("odd")
    world.supervisor.stop("odd")
    await world.reach(State.STOPPED)
    assert not any(map(is_running, containers(docker).values()))
    assert world.notes == []
    await world.close()


async def test_when_the_program_dies_the_container_does_not_outlive_it(docker: Path, tmp_path: Path):
    world = Containered(tmp_path)
    world.apply(odd=in_container(server=("--ignore-term",)))
    upstream = await world.supervisor.upstream("odd")
    os.kill(upstream.pid or 0, signal.SIGKILL)
    await until(lambda: len(containers(docker)) == 2)
    first, second = containers(docker).values()
    await world.reach(State.READY)
    assert not is_running(first)
    await world.close()
    assert not is_running(second)


async def test_a_server_that_is_started_twice_in_one_start_leaves_nothing(docker: Path, tmp_path: Path):
    launch = LocalLaunch(("docker", "run", "-i", "image", *odd_server("--ignore-term")))
    claim = Containers(tmp_path / "notes").claim("odd", launch, os.environ)
    assert claim is not None
    for count in (1, 2):
        program = await ChildProcess.spawn(
            claim.launch, environment=os.environ, on_stdout=lambda data: None, on_stderr=lambda data: None
        )
        await until(lambda: len(containers(docker)) == count)  # noqa: B023
        os.kill(program.pid, signal.SIGKILL)
        await program.exited
    await claim.release(os.environ)
    assert not any(map(is_running, containers(docker).values()))
    assert list((tmp_path / "notes").iterdir()) == []


async def test_options_of_the_program_are_kept_for_the_removal(docker: Path, tmp_path: Path):
    world = Containered(tmp_path)
    entry = in_container(server=("--ignore-term",))
    args = ["--context", "run", "--log-level=info", "container", *entry.args]
    world.apply(odd=entry.model_copy(update={"command": "podman", "args": args}))
    await world.supervisor.upstream("odd")
    await world.close()
    assert not any(map(is_running, containers(docker).values()))


async def test_a_file_that_the_person_has_chosen_is_used(docker: Path, tmp_path: Path):
    world = Containered(tmp_path)
    chosen = tmp_path / "chosen.cid"
    world.apply(odd=in_container(f"--cidfile={chosen}", server=("--ignore-term",)))
    upstream = await world.supervisor.upstream("odd")
    assert upstream.pid is not None
    assert f"--cidfile={chosen}".encode() in Path(f"/proc/{upstream.pid}/cmdline").read_bytes()
    world.supervisor.restart("odd")
    again = await world.supervisor.upstream("odd")
    assert again.pid != upstream.pid
    assert len(containers(docker)) == 2
    await world.close()
    assert not any(map(is_running, containers(docker).values()))
    assert not chosen.exists()


async def test_after_a_kill_of_the_engine_the_next_one_removes_them(docker: Path, tmp_path: Path):
    folder = tmp_path / "containers"
    launch = LocalLaunch(("docker", "run", "-i", "image", *odd_server("--ignore-term")))
    claim = Containers(folder).claim("odd", launch, os.environ)
    assert claim is not None
    program = await ChildProcess.spawn(
        claim.launch, environment=os.environ, on_stdout=lambda data: None, on_stderr=lambda data: None
    )
    await until(lambda: containers(docker))
    os.kill(program.pid, signal.SIGKILL)
    await program.exited
    ((identity, pid),) = containers(docker).items()
    assert is_running(pid)
    assert identity in "".join(file.read_text() for file in folder.glob("*.cid"))
    await Containers(folder).end_previous({"PATH": os.environ["PATH"]})
    assert not is_running(pid)
    assert list(folder.iterdir()) == []


async def test_a_note_that_cannot_be_read_keeps_nothing_back(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "odd-1.json").write_text("{")
    await Containers(tmp_path).end_previous({})
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize(
    "argv",
    [
        ("docker", "exec", "-i", "run", "server"),
        ("docker",),
        ("docker", "--context", "run"),
        ("node", "run", "server"),
        ("no-such-folder/docker", "run", "image"),
    ],
)
def test_other_commands_are_left_as_they_are(docker: Path, tmp_path: Path, argv: tuple[str, ...]):
    assert Containers(tmp_path / "notes").claim("odd", LocalLaunch(argv), os.environ) is None
    assert not (tmp_path / "notes").exists()


def test_secrets_are_not_noted(docker: Path, tmp_path: Path):
    folder = tmp_path / "notes"
    launch = LocalLaunch(("docker", "run", "-e", "TOKEN", "image"), {"TOKEN": "s3cret"})
    assert Containers(folder).claim("odd", launch, {**os.environ, **launch.env}) is not None
    (note,) = folder.iterdir()
    assert "s3cret" not in note.read_text()
    assert str(docker) in note.read_text()
