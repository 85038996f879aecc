"""`callboard doctor NAME`: the steps to one server, up to the one that fails; and what a code means."""

from __future__ import annotations

import sys
from pathlib import Path

from callboard.api.schema import Check
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, entry
from tests.support.gateway import SERVERS, http_server
from tests.support.processes import odd_server
from tests.support.tls import answering, make_certificates

REMOTE = SERVERS / "faulty" / "remote.py"


async def examine(engine: EngineProcess, server: str) -> dict[str, Check]:
    """The checks of one server by their names."""
    return {check.name: check for check in await engine.client.doctor(server)}


def results(checks: dict[str, Check]) -> dict[str, str]:
    """How each step went."""
    return {name: check.status for name, check in checks.items()}


async def test_local_servers(callboard_home: Path, tmp_path: Path) -> None:
    roster = {
        "ready": entry(*odd_server()),
        "stopped": entry(*odd_server(), start="manual"),
        "off": entry(*odd_server(), enabled=False),
        "found": {"command": "sh", "args": ["-c", "exit 3"], "restart": {"max": 0}},
        "gone": {"command": "no-such-program-4711"},
        "nowhere": entry(*odd_server(), cwd=str(tmp_path / "missing")),
        "unset": entry(*odd_server(), env={"A": "${env:SURELY_NOT_SET_4711}"}),
        "deaf": entry(*odd_server("--silent"), timeouts={"start": 0.3}),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        before = await engine.wait_for("ready", "ready")
        checks = await examine(engine, "ready")
        assert results(checks) == dict.fromkeys(("ready", "settings", "command", "handshake", "lists", "answers"), "ok")
        assert sys.executable in checks["command"].message
        assert "2025-11-25" in checks["handshake"].message
        assert (await engine.client.server("ready")).since == before.since

        checks = await examine(engine, "stopped")
        assert results(checks)["answers"] == "ok"
        assert "Started for this check" in checks["handshake"].message
        assert (await engine.wait_for("stopped", "stopped")).tools == 3, "and stopped again"
        assert results(await examine(engine, "off"))["handshake"] == "warn"
        assert (await engine.client.server("off")).state == "disabled"

        checks = await examine(engine, "found")
        assert "found in /" in checks["command"].message
        assert (checks["handshake"].status, checks["handshake"].message) == ("fail", "Exited with code 3.")
        for name, step, code in (
            ("gone", "command", "command-not-found"),
            ("nowhere", "folder", "cwd-missing"),
            ("unset", "settings", "env-unset"),
            ("deaf", "handshake", "start-timeout"),
        ):
            checks = await examine(engine, name)
            assert list(checks)[-1] == step
            assert (checks[step].status, checks[step].code) == ("fail", code)
            assert checks[step].fix


async def test_remote_servers(callboard_home: Path) -> None:
    with http_server(REMOTE, "token", "good") as token, http_server(REMOTE, "fails", "1000") as failing:
        port = token.rpartition(":")[2]
        roster = {
            "good": {"url": f"http://localhost:{port}/mcp", "headers": {"Authorization": "Bearer good"}},
            "stranger": {"url": f"{token}/mcp", "auth": {"type": "none"}},
            "failing": {"url": f"{failing}/mcp", "restart": {"max": 0}},
            "nobody": {"url": "http://127.0.0.1:9/mcp", "restart": {"max": 0}},
            "unknown": {"url": "http://no-such-host.invalid/mcp", "restart": {"max": 0}},
            "plain": {"url": f"https://127.0.0.1:{port}/mcp"},
        }
        async with EngineProcess(callboard_home, roster) as engine:
            await engine.wait_for("good", "ready")
            checks = await examine(engine, "good")
            steps = ("good", "settings", "dns", "tcp", "http", "auth", "handshake", "lists", "answers")
            assert results(checks) == dict.fromkeys(steps, "ok")
            assert "127.0.0.1" in checks["tcp"].message
            for name, step, code in (
                ("stranger", "auth", "remote-sign-in"),
                ("failing", "http", "remote-failed"),
                ("nobody", "tcp", "remote-refused"),
                ("unknown", "dns", "remote-dns"),
                ("plain", "tls", "remote-tls"),
            ):
                await engine.wait_for(name, "needs-sign-in", "failed")
                checks = await examine(engine, name)
                assert list(checks)[-1] == step
                assert (checks[step].status, checks[step].code) == ("fail", code), checks[step]
            assert results(await examine(engine, "stranger"))["http"] == "ok", "no fault of the network"


async def test_a_certificate_that_nobody_trusts(callboard_home: Path, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path / "certificates")
    async with answering(certificates.context(), "404 Not Found") as port:
        own = {"url": f"https://127.0.0.1:{port}/mcp", "restart": {"max": 0}}
        trusted = {**own, "auth": {"type": "mtls", "certificate": str(certificates.client), "ca": str(certificates.ca)}}
        async with EngineProcess(callboard_home, {"own": own, "trusted": trusted}) as engine:
            await engine.wait_for("own", "failed")
            checks = await examine(engine, "own")
            assert results(checks)["tcp"] == "ok"
            assert checks["tls"].code == "remote-tls"
            assert "not trusted" in checks["tls"].message
            await engine.wait_for("trusted", "failed")
            checks = await examine(engine, "trusted")
            assert results(checks)["tls"] == "ok"
            assert "it ends on" in checks["tls"].message
            assert (checks["http"].status, checks["http"].code) == ("fail", "remote-not-found")


async def test_the_command_explains_codes_and_shows_checks(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    explained = await callboard("doctor", "crash-loop")
    assert (explained.code, explained.err) == (0, "")
    assert explained.out.splitlines()[0] == "code:    crash-loop"
    assert (await callboard("doctor", "remote-tls", "--json")).json["fix"]
    async with EngineProcess(callboard_home, {"gone": {"command": "no-such-program-4711"}}) as engine:
        await engine.wait_for("gone", "failed")
        shown = await callboard("doctor", "gone")
        assert shown.code == 1
        assert [line.split()[:2] for line in shown.out.splitlines()[:4]] == [
            ["RESULT", "CHECK"],
            ["fail", "gone"],
            ["ok", "settings"],
            ["fail", "command"],
        ]
        assert (await callboard("doctor", "nobody")).code == 4


async def test_all_that_is_missing_and_all_mistakes_are_listed(callboard_home: Path) -> None:
    env = {"A": "${env:NOT_SET_4711}", "B": "${secret:gone}", "C": "${env:NOT_SET_4712}"}
    async with EngineProcess(callboard_home, {"bare": entry(*odd_server(), env=env)}) as engine:
        await engine.wait_for("bare", "needs-config")
        found = [check for check in await engine.client.doctor("bare") if check.name == "settings"]
        assert [check.code for check in found] == ["env-unset", "env-unset", "secret-missing"]
        assert ["NOT_SET_4711" in found[0].message, "NOT_SET_4712" in found[1].message] == [True, True]
        assert "callboard secrets set gone" in found[2].fix
        engine.paths.roster.write_text("version: 1\nservers:\n  a: {comand: x}\n  b: {url: 5}\n  c: {}\n")
        await engine.wait_for_roster_problem()
        mistakes = [check.message for check in await engine.client.doctor() if check.name == "roster"]
        assert [message.partition(",")[0] for message in mistakes] == ["Line 3", "Line 4", "Line 5"]
