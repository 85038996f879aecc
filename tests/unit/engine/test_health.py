import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from callboard.core.errors import CallboardError
from callboard.core.supervision import Event, Failed, ProblemFound, ProblemGone
from callboard.engine.health import NOT_RESPONDING, Health, HealthPlan
from callboard.engine.upstream.base import Closed
from callboard.engine.upstream.rpc import RpcConnection

PLAN = HealthPlan(silence=60.0, again=5.0, patience=0.02, short=0.01)
CALL_LIMIT = 300.0


class Connection(RpcConnection):
    """A connection whose answer to a ping is scripted."""

    def __init__(self, *, remote: bool = False) -> None:
        super().__init__(peer=None)  # type: ignore[arg-type]  # says nothing by itself
        self.pid = None if remote else 1
        self.sent: list[bytes] = []
        self.on_ping: Callable[[], Awaitable[None]] | None = None

    def transmit(self, message: bytes) -> None:
        """Keep what is sent."""
        self.sent.append(message)

    async def ping(self, *, seconds: float = 10.0) -> None:
        """As scripted; never answered if nothing is."""
        if self.on_ping is None:
            await super().ping(seconds=seconds)
        else:
            await self.on_ping()

    def fails(self, code: str, message: str = "It failed.", **data: int) -> None:
        """From now on a ping fails like this."""

        async def fail() -> None:
            raise CallboardError(code, message, data=dict(data))

        self.on_ping = fail

    def answers(self) -> None:
        """From now on a ping is answered."""

        async def answer() -> None:
            self.last_heard = time.monotonic()

        self.on_ping = answer


async def checks(health: Health, count: int) -> list[Event | None]:
    return [await health.check(CALL_LIMIT) for _ in range(count)]


async def test_a_server_is_asked_after_silence_and_not_while_it_talks():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    assert health.due == connection.last_heard + 60
    connection.last_heard += 40
    assert health.due == connection.last_heard + 60
    assert Health(connection, PLAN, stretch=1.0).due == connection.last_heard + 75


async def test_one_missed_check_changes_nothing_and_the_third_ends_the_connection():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    first, second, third = await checks(health, 3)
    assert first is None
    assert second == ProblemFound(NOT_RESPONDING, "has not answered 2 health checks in a row")
    assert third == Failed(NOT_RESPONDING, "has not answered 3 health checks in a row")


async def test_a_missed_check_is_followed_by_one_soon():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    await health.check(CALL_LIMIT)
    assert health.due <= time.monotonic() + 5


async def test_an_answer_takes_back_what_was_told():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    await checks(health, 2)
    connection.answers()
    assert await health.check(CALL_LIMIT) == ProblemGone(NOT_RESPONDING)
    assert await health.check(CALL_LIMIT) is None
    connection.on_ping = None
    assert await checks(health, 2) == [None, ProblemFound(NOT_RESPONDING, "has not answered 2 health checks in a row")]


async def test_a_server_with_calls_in_flight_is_not_asked():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    call = asyncio.ensure_future(connection.request("tools/call", {}))
    await asyncio.sleep(0)
    sent = len(connection.sent)
    assert await checks(health, 5) == [None] * 5
    assert len(connection.sent) == sent
    call.cancel()


async def test_a_stream_of_notifications_is_no_call_in_flight():
    connection = Connection()
    listening = asyncio.ensure_future(connection.request("subscriptions/listen", {}))
    await asyncio.sleep(0)
    assert not connection.busy
    assert connection.pending
    listening.cancel()


async def test_a_call_that_was_given_up_never_brings_the_server_down():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    with pytest.raises(CallboardError, match="did not answer"):
        await connection.request("tools/call", {}, seconds=0.001)
    assert connection.given_up is not None
    found = await checks(health, 6)
    assert found[0] is None
    assert {type(event) for event in found[1:]} == {ProblemFound}
    # longer than any call may take: now it hangs
    connection.given_up -= CALL_LIMIT + 1
    assert isinstance(await health.check(CALL_LIMIT), Failed)


async def test_any_answer_shows_that_a_given_up_call_is_done():
    connection = Connection()
    with pytest.raises(CallboardError):
        await connection.request("tools/call", {}, seconds=0.001)
    answered = asyncio.ensure_future(connection.request("tools/list", {}))
    await asyncio.sleep(0)
    assert connection.received(b'{"jsonrpc":"2.0","id":2,"result":{}}')
    await answered
    assert connection.given_up is None


async def test_whoever_says_anything_meanwhile_is_alive():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)

    async def talk() -> None:
        await asyncio.sleep(0)
        connection.received(b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
        raise CallboardError("call-timeout", "late")

    connection.peer = _Deaf()  # type: ignore[assignment]
    connection.on_ping = talk
    assert await checks(health, 4) == [None] * 4


class _Deaf:
    def on_server_notification(self, method: str, params: object) -> None:
        """Nobody listens."""


@pytest.mark.parametrize("status", [400, 405, 429, 501])
async def test_a_refused_ping_is_an_answer(status: int):
    connection = Connection(remote=True)
    connection.fails("remote-status", status=status)
    assert await checks(Health(connection, PLAN, stretch=0.0), 4) == [None] * 4


async def test_a_refused_sign_in_is_told_at_once_and_as_such():
    connection = Connection(remote=True)
    connection.fails("remote-sign-in", "The server wants a sign-in (HTTP 401).", status=401)
    found = await Health(connection, PLAN, stretch=0.0).check(CALL_LIMIT)
    assert found == Failed("remote-sign-in", "The server wants a sign-in (HTTP 401).")


async def test_a_bad_gateway_stays_one():
    connection = Connection(remote=True)
    connection.fails("remote-status", "The server answered HTTP 502.", status=502)
    found = await checks(Health(connection, PLAN, stretch=0.0), 3)
    reason = "health checks in a row: The server answered HTTP 502"
    assert found == [
        None,
        ProblemFound(NOT_RESPONDING, f"has failed 2 {reason}"),
        Failed("remote-status", f"has failed 3 {reason}"),
    ]


async def test_after_an_interruption_one_look_decides():
    connection = Connection(remote=True)
    health = Health(connection, PLAN, stretch=0.0)
    moment = time.monotonic() + 7
    health.check_at(moment)
    assert health.due == moment
    lost = await health.check(CALL_LIMIT)
    assert isinstance(lost, Failed)
    assert lost.code == "remote-unreachable"
    connection.answers()
    health.check_at(moment)
    assert await health.check(CALL_LIMIT) is None
    assert health.due > moment


async def test_an_interruption_cuts_off_no_call():
    connection = Connection(remote=True)
    health = Health(connection, PLAN, stretch=0.0)
    call = asyncio.ensure_future(connection.request("tools/call", {}))
    await asyncio.sleep(0)
    health.check_at(0.0)
    assert await health.check(CALL_LIMIT) is None
    assert health.due <= time.monotonic() + 5
    call.cancel()
    await asyncio.wait([call])
    connection.given_up = None
    assert isinstance(await health.check(CALL_LIMIT), Failed)


async def test_an_answer_with_a_status_after_an_interruption_is_a_missed_check_like_others():
    connection = Connection(remote=True)
    connection.fails("remote-status", status=503)
    health = Health(connection, PLAN, stretch=0.0)
    health.check_at(0.0)
    assert await health.check(CALL_LIMIT) is None


async def test_the_end_of_the_connection_is_told_by_itself():
    connection = Connection()
    health = Health(connection, PLAN, stretch=0.0)
    connection.end(Closed("exited with code 1", code=1))
    assert await checks(health, 4) == [None] * 4
