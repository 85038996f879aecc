"""Certificates of a test's own, and a TLS server that asks for them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

PASSPHRASE = "open sesame"


@dataclass(frozen=True)
class Certificates:
    """Files for a client, and contexts for a server."""

    folder: Path
    authority: trustme.CA
    server: trustme.LeafCert

    @property
    def ca(self) -> Path:
        """The bundle that trusts the server."""
        return self.folder / "ca.pem"

    @property
    def client(self) -> Path:
        """A client's certificate and key in one file."""
        return self.folder / "client.pem"

    @property
    def client_certificate(self) -> Path:
        """The certificate alone."""
        return self.folder / "client-certificate.pem"

    @property
    def locked_key(self) -> Path:
        """The key alone, under :data:`PASSPHRASE`."""
        return self.folder / "client-key.pem"

    def context(self, *, ask: bool = False) -> ssl.SSLContext:
        """A server's context; with ``ask`` it lets only clients of this authority in."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.configure_cert(context)
        if ask:
            self.authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(folder: Path, *hosts: str) -> Certificates:
    """A new authority with a certificate for a server and one for a client."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    made = Certificates(folder, authority, authority.issue_cert(*(hosts or ("127.0.0.1", "localhost"))))
    client = authority.issue_cert("person@callboard.test")
    authority.cert_pem.write_to_path(made.ca)
    client.private_key_and_cert_chain_pem.write_to_path(made.client)
    client.cert_chain_pems[0].write_to_path(made.client_certificate)
    key = load_pem_private_key(client.private_key_pem.bytes(), None)
    sealed = BestAvailableEncryption(PASSPHRASE.encode())
    made.locked_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed))
    return made


@asynccontextmanager
async def answering(context: ssl.SSLContext | None, status: str = "200 OK") -> AsyncIterator[int]:
    """A server that answers every request alike; yields its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
