"""Routes of the sign-ins to remote servers."""

from callboard.api.routes.route import Route
from callboard.api.sign_in_schema import SignInAnswer, SignInView
from callboard.engine.engine import Engine


async def view(engine: Engine, name: str) -> SignInView:
    """The OAuth sign-in of a server, and its newest attempt step by step."""
    return await engine.sign_ins.view(name)


async def begin(engine: Engine, name: str) -> SignInView:
    """Sign in: answers with the address that the person is wanted at, or with how it ended without one."""
    return await engine.sign_ins.begin(name)


async def answer(engine: Engine, name: str, body: SignInAnswer) -> SignInView:
    """Hand over the address that a browser ended at on another computer, or the code in it."""
    return engine.sign_ins.pasted(name, body.answer)


async def cancel(engine: Engine, name: str) -> SignInView:
    """Give up a sign-in that is under way."""
    await engine.sign_ins.cancel(name)
    return await engine.sign_ins.view(name)


async def sign_out(engine: Engine, name: str) -> SignInView:
    """Forget a server's sign-in."""
    return await engine.sign_ins.sign_out(name)


ROUTES = (
    Route("GET", "/servers/{name}/sign-in", view),
    Route("POST", "/servers/{name}/sign-in", begin),
    Route("POST", "/servers/{name}/sign-in/answer", answer),
    Route("DELETE", "/servers/{name}/sign-in", cancel),
    Route("POST", "/servers/{name}/sign-out", sign_out),
)
