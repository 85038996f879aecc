"""Certificates, and what a failed exchange with a remote server is called."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch, TlsLaunch
from callboard.engine.upstream.http_client import failure, make_client, refused
from tests.support.tls import PASSPHRASE, Certificates, answering, make_certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


async def outcome(launch: RemoteLaunch) -> int | CallboardError:
    client = await make_client(launch)
    async with client:
        try:
            return (await client.post(launch.url, content=b"{}", timeout=5)).status_code
        except httpx2.HTTPError as error:
            return failure(error)


def code_of(found: int | CallboardError) -> str:
    assert isinstance(found, CallboardError)
    return found.code


@pytest.mark.parametrize("separate", [False, True])
async def test_a_client_certificate_lets_us_in(certificates: Certificates, separate: bool) -> None:
    tls = TlsLaunch(certificates.client, ca=certificates.ca)
    if separate:
        tls = TlsLaunch(certificates.client_certificate, certificates.locked_key, PASSPHRASE, certificates.ca)
    async with answering(certificates.context(ask=True)) as port:
        assert await outcome(RemoteLaunch(f"https://127.0.0.1:{port}/", tls=tls)) == 200


async def test_a_server_of_an_unknown_authority_is_not_trusted(certificates: Certificates, tmp_path: Path) -> None:
    other = make_certificates(tmp_path)
    async with answering(certificates.context()) as port:
        url = f"https://127.0.0.1:{port}/"
        for launch in (RemoteLaunch(url), RemoteLaunch(url, tls=TlsLaunch(other.client, ca=other.ca))):
            found = await outcome(launch)
            assert code_of(found) == "remote-tls"
            assert "The server's certificate is not trusted" in str(found)


async def test_a_certificate_for_another_name_is_not_trusted(tmp_path: Path) -> None:
    made = make_certificates(tmp_path, "other.test")
    async with answering(made.context()) as port:
        found = await outcome(RemoteLaunch(f"https://127.0.0.1:{port}/", tls=TlsLaunch(made.client, ca=made.ca)))
        assert code_of(found) == "remote-tls"
        assert "not trusted" in str(found)


async def test_without_the_right_client_certificate_the_server_closes(
    certificates: Certificates, tmp_path: Path
) -> None:
    other = make_certificates(tmp_path)
    context = certificates.context(ask=True)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.maximum_version = version
        async with answering(context) as port:
            url = f"https://127.0.0.1:{port}/"
            found = await outcome(RemoteLaunch(url, tls=TlsLaunch(other.client, ca=certificates.ca)))
            assert code_of(found) in ("remote-tls", "remote-unreachable")  # the refusal itself often gets lost
            assert "another client certificate" in str(found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"certificate": "no.pem"}, "certificate, FOLDER/no.pem, does not exist"),
        ({"key": "no.pem"}, "key, FOLDER/no.pem, does not exist"),
        ({"ca": "no.pem"}, "CA bundle FOLDER/no.pem does not exist"),
        ({"ca": "text"}, "CA bundle FOLDER/text is not in PEM format"),
        ({"certificate": "text"}, "certificate, FOLDER/text, is not in PEM format"),
        ({"key": "text"}, "key, FOLDER/text, is not in PEM format"),
        ({"passphrase": ""}, "The key needs its passphrase"),
        ({"passphrase": "wr\nong"}, "The passphrase does not open the key"),
        ({"key": None}, "No private key can be read from FOLDER/client-certificate.pem"),
        ({"key": "other.pem"}, "does not belong to the certificate"),
    ],
)
async def test_files_that_cannot_be_used_are_named(
    certificates: Certificates, tmp_path: Path, change: dict[str, str | None], said: str
) -> None:
    folder = certificates.folder
    (folder / "text").write_text("no certificate")
    (folder / "other.pem").write_bytes(make_certificates(tmp_path).client.read_bytes())
    values = {
        "certificate": "client-certificate.pem",
        "key": "client-key.pem",
        "ca": "ca.pem",
        "passphrase": PASSPHRASE,
    } | change
    paths = {name: folder / text if text else None for name, text in values.items() if name != "passphrase"}
    tls = TlsLaunch(paths["certificate"] or folder, paths["key"], values["passphrase"] or "", paths["ca"])
    with pytest.raises(CallboardError) as caught:
        await make_client(RemoteLaunch("https://h/", tls=tls))
    assert caught.value.code == "remote-certificate"
    assert said.replace("FOLDER", str(folder)) in caught.value.message
    assert "wr\nong" not in caught.value.message


async def test_what_went_wrong_is_told_apart(unused_tcp_port: int) -> None:
    assert code_of(await outcome(RemoteLaunch("http://callboard.invalid/"))) == "remote-dns"
    assert code_of(await outcome(RemoteLaunch(f"http://127.0.0.1:{unused_tcp_port}/"))) == "remote-refused"
    async with talking(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        found = await outcome(RemoteLaunch(f"https://127.0.0.1:{port}/"))
        assert code_of(found) == "remote-tls"
        assert "does not speak TLS" in str(found)
    async with talking(b"") as port:
        client = await make_client(RemoteLaunch(f"http://127.0.0.1:{port}/"))
        async with client:
            with pytest.raises(httpx2.HTTPError) as caught:
                await client.get(f"http://127.0.0.1:{port}/", timeout=0.2)
        assert failure(caught.value).code == "remote-timeout"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "remote-sign-in"),
        (403, "remote-forbidden"),
        (404, "remote-not-found"),
        (410, "remote-not-found"),
        (407, "remote-proxy"),
        (302, "remote-status"),
        (429, "remote-status"),
        (500, "remote-failed"),
        (503, "remote-failed"),
    ],
)
def test_each_status_has_its_code(status: int, code: str) -> None:
    error = refused(status, b"<html>token", "http://else/")
    assert (error.code, error.data) == (code, {"status": status})
    assert "<html>" not in error.message


async def test_the_systems_proxy_is_used_but_not_for_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(None, "299 From the proxy") as proxy, answering(None) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy}")
        monkeypatch.setenv("NO_PROXY", "direct.invalid")
        assert await outcome(RemoteLaunch("http://somewhere.invalid/")) == 299
        assert code_of(await outcome(RemoteLaunch("http://direct.invalid/"))) == "remote-dns"
        for host in ("127.0.0.1", "localhost"):
            assert await outcome(RemoteLaunch(f"http://{host}:{port}/")) == 200


async def test_a_proxy_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_tcp_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    found = await outcome(RemoteLaunch("http://somewhere.invalid/"))
    assert code_of(found) == "remote-refused"
    assert "through the proxy 127.0.0.1" in str(found)


@asynccontextmanager
async def talking(words: bytes) -> AsyncIterator[int]:
    """A server that says the same to all, whatever they say, and then nothing more."""
    writers: list[asyncio.StreamWriter] = []

    def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(words)

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()
