"""`callboard doctor`: what could be wrong, looked at and said with its fix."""

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from callboard.api.schema import Check
from callboard.core.health import Severity

if TYPE_CHECKING:
    from callboard.engine.engine import Engine
    from callboard.engine.server_table import ServerTable


MOST_MISTAKES: Final = 20  # of a roster
_STATUS: dict[Severity, Literal["ok", "warn", "fail"]] = {Severity.FAILED: "fail", Severity.ATTENTION: "warn"}


async def examine(engine: "Engine", table: "ServerTable", server: str) -> list[Check]:
    """The checks of the engine, or of one server; raises ``server-unknown``."""
    if server:
        return await _server_checks(engine, table, server) + await table.looks.test(server)
    view = await engine.view()
    checks = [Check(name="engine", status="ok", message=f"Version {view.version} runs as process {view.pid}.")]
    checks.append(Check(name="gateway", status="ok", message=f"Clients reach it at {view.mcp_url}."))
    checks += [
        Check(name=_part(notice.code), status="warn", message=notice.message, code=notice.code, fix=notice.fix)
        for notice in view.notices
        if notice not in engine.telemetry.notices
    ]
    if engine.storage is not None:
        checks += await engine.storage.checks()
    checks += _roster_checks(engine)
    await engine.secrets.look()
    secrets = await engine.secret_desk.view()
    place = f"the keyring ({secrets.backend})" if secrets.kind == "keyring" else secrets.backend
    checks.append(
        Check(name="secrets", status="warn", message=secrets.problem, fix=secrets.fix)
        if secrets.problem
        else Check(name="secrets", status="ok", message=f"Values are kept in {place}.")
    )
    checks += engine.telemetry.checks()
    checks += engine.policy.checks()
    for name in engine.roster_file.roster.servers:
        checks += await _server_checks(engine, table, name)
    return checks


def _part(code: str) -> str:
    """The part of the engine that a notice is about."""
    return "storage" if code.startswith("storage-") else "gateway"


def _roster_checks(engine: "Engine") -> list[Check]:
    roster, problem = engine.roster_view(), engine.roster_file.problem
    if problem is not None:
        mistakes = problem.data.get("mistakes") or [problem.message]
        failed = Check(name="roster", status="fail", message="", code=problem.code, fix=problem.fix)
        return [msgspec.structs.replace(failed, message=each) for each in mistakes[:MOST_MISTAKES]]
    count = len(roster.servers)
    message = f"{roster.path} lists {count} server{'' if count == 1 else 's'}."
    return [Check(name="roster", status="ok", message=message)]


async def _server_checks(engine: "Engine", table: "ServerTable", name: str) -> list[Check]:
    view = engine.server(name)
    sentence = f"{view.state.value}{': ' + view.reason if view.reason else ''}"
    status = _STATUS.get(view.severity, "ok")
    checks = [Check(name=name, status=status, message=sentence, code=view.error_code, fix=view.fix)]
    checks += [
        Check(name=name, status="warn", message=f'The tool "{tool.name}" is left out: {tool.problem}.')
        for tool in await engine.offers.tools(name)
        if not tool.wire_name
    ]
    return checks + await engine.shipped_servers.checks(name, engine.roster_file.roster.written[name])
