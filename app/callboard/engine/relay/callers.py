"""Tells servers of our own who calls, where one process serves many clients: in the request's metadata."""

import hashlib
from typing import Final

from callboard.engine.relay.envelope import Raw, decode_params, raw_json
from callboard.engine.relay.sessions import Session
from callboard.engine.upstream.base import Params

META_CLIENT: Final = "callboard/client"
META_SESSION: Final = "callboard/session"


def name_caller(params: Params, caller: str, session: Session | None) -> Params:
    """``params`` with the owner of the client's token and, in the older era, a mark of its session in ``_meta``.

    What the client itself wrote there under these names goes. The mark is not the session's id, which is a secret.
    Raises msgspec.DecodeError for metadata that is no object.
    """
    meta = decode_params(params.get("_meta", Raw(b"")))
    meta = {name: value for name, value in meta.items() if name not in (META_CLIENT, META_SESSION)}
    meta[META_CLIENT] = raw_json(caller)
    if session is not None:
        meta[META_SESSION] = raw_json(hashlib.blake2b(session.id.encode(), digest_size=12).hexdigest())
    return params | {"_meta": raw_json(meta)}
