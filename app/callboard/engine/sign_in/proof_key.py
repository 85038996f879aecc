"""A key to which tokens are bound, so that they are of no use to a thief (RFC 9449, DPoP)."""

import base64
import hashlib
import json
import secrets
import time
from typing import Any
from urllib.parse import urlsplit, urlunsplit

ALGORITHM = "ES256"
_SIZE = 32  # bytes of a coordinate of P-256


class ProofKey:
    """An elliptic curve key. ``nonces`` holds the newest nonce that each origin wants in proofs."""

    def __init__(self, pem: str = "") -> None:
        """The key that ``pem`` holds, or a new one. The library is loaded here: it costs 7 MB."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(pem.encode(), None) if pem else ec.generate_private_key(ec.SECP256R1())
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        point = key.public_key().public_numbers()
        self._jwk = {"kty": "EC", "crv": "P-256", "x": _number(point.x), "y": _number(point.y)}
        self.nonces: dict[str, str] = {}

    @property
    def pem(self) -> str:
        """The key as it is kept."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def proof(self, method: str, url: str, token: str = "") -> str:
        """A proof for one request, with the token that it bears (RFC 9449 section 4.2)."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": urlunsplit(urlsplit(url)._replace(query="", fragment="")),
            "iat": int(time.time()),
        }
        if token:
            claims["ath"] = _encode(hashlib.sha256(token.encode()).digest())
        if nonce := self.nonces.get(_origin(url)):
            claims["nonce"] = nonce
        head = {"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self._jwk}
        signed = f"{_encode(json.dumps(head).encode())}.{_encode(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}"

    def heard(self, url: str, nonce: str) -> bool:
        """A server wants this nonce from now on; False if it is none, or the one that it has got already."""
        if not nonce or self.nonces.get(_origin(url)) == nonce:
            return False
        self.nonces[_origin(url)] = nonce
        return True


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _number(value: int) -> str:
    return _encode(value.to_bytes(_SIZE, "big"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
