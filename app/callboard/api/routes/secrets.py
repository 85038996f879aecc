"""Routes of the secrets. A value goes in and never comes out."""

from callboard.api.routes.route import Route
from callboard.api.schema import SecretsView, SecretValue
from callboard.engine.engine import Engine


async def secrets(engine: Engine) -> SecretsView:
    """The secret store and the names in use."""
    return await engine.secret_desk.view()


async def set_secret(engine: Engine, name: str, body: SecretValue) -> None:
    """Store a secret's value. Waits while the keyring's own prompt is open."""
    await engine.secret_desk.set(name, body.value)


async def delete_secret(engine: Engine, name: str) -> None:
    """Forget a secret's value."""
    await engine.secret_desk.delete(name)


ROUTES = (
    Route("GET", "/secrets", secrets),
    Route("PUT", "/secrets/{name}", set_secret),
    Route("DELETE", "/secrets/{name}", delete_secret),
)
