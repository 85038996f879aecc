import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from callboard.core.launch import LocalLaunch, RemoteLaunch
from callboard.engine.environment import Environment

Make = Callable[..., Environment]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Environment] = []

    def make(shell: str, *, limit: float = 20.0, **variables: str) -> Environment:
        own = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SHELL": shell, **variables}
        environment = Environment(own, tmp_path, shell_limit=limit)
        made.append(environment)
        return environment

    yield make
    for environment in made:
        await environment.close()


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def folders(environment: Environment) -> list[str]:
    return environment.variables["PATH"].split(":")


async def test_a_command_that_only_the_shell_knows_of_waits_for_its_answer(make: Make, tmp_path: Path):
    script(tmp_path / "tools" / "my-server", "#!/bin/sh\n")
    (tmp_path / ".profile").write_text(f"echo Hello, no line end follows\nprintf x\nPATH={tmp_path}/tools:$PATH\n")
    environment = make("/bin/sh", QT_PLUGIN_PATH="/x", https_proxy="http://proxy")
    environment.start()
    assert str(tmp_path / "tools") not in folders(environment)
    await environment.prepare(LocalLaunch(("my-server",)))
    assert folders(environment)[0] == str(tmp_path / "tools")
    assert "/usr/bin" in folders(environment)
    assert environment.variables["https_proxy"] == "http://proxy"
    assert "QT_PLUGIN_PATH" not in environment.variables
    assert "TERM" not in environment.variables


async def test_others_do_not_wait_for_a_shell_that_hangs(make: Make, tmp_path: Path):
    environment = make(script(tmp_path / "hangs", "#!/bin/sh\nsleep 600\n"))
    environment.start()
    await environment.prepare(LocalLaunch(("sh",)))
    await environment.prepare(LocalLaunch(("/bin/sh",)))
    await environment.prepare(RemoteLaunch("http://localhost"))
    assert folders(environment)[:2] == ["/usr/bin", "/bin"]


async def test_a_shell_that_hangs_is_given_up_and_leaves_nothing(make: Make, tmp_path: Path):
    environment = make(script(tmp_path / "hangs", "#!/bin/sh\ntrap '' TERM\nsleep 600 & wait; sleep 600\n"), limit=0.2)
    environment.start()
    await environment.prepare(LocalLaunch(("no-such-server",)))
    assert folders(environment)[:2] == ["/usr/bin", "/bin"]


async def test_an_answer_is_taken_though_the_shell_goes_on(make: Make, tmp_path: Path):
    text = "#!/bin/sh\necho callboard-path-begins\necho /from/shell\necho callboard-path-ends\nsleep 600\n"
    environment = make(script(tmp_path / "stays", text))
    environment.start()
    await environment.prepare(LocalLaunch(("no-such-server",)))
    assert "/from/shell" in folders(environment)


@pytest.mark.parametrize("shell", ["/usr/sbin/nologin", "/no/such/shell"])
async def test_without_a_shell_nothing_is_waited_for(make: Make, shell: str):
    environment = make(shell)
    environment.start()
    async with asyncio.timeout(60):
        await environment.prepare(LocalLaunch(("no-such-server",)))
    assert folders(environment)[:2] == ["/usr/bin", "/bin"]


async def test_the_servers_own_path_decides(make: Make, tmp_path: Path):
    script(tmp_path / "own" / "my-server", "#!/bin/sh\n")
    environment = make(script(tmp_path / "hangs", "#!/bin/sh\nsleep 600\n"))
    environment.start()
    async with asyncio.timeout(60):
        await environment.prepare(LocalLaunch(("my-server",), {"PATH": str(tmp_path / "own")}))
