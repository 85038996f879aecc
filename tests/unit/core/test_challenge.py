"""WWW-Authenticate as servers write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.challenge import Challenge, challenge_of, challenges

METADATA = "https://h/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", Challenge(401)),
        ("Bearer", Challenge(401)),
        ('Bearer realm="mcp", resource_metadata="https://h/m"', Challenge(401, resource_metadata="https://h/m")),
        ('bearer error=invalid_token,scope="a  b"', Challenge(401, "invalid_token", "a b")),
        ('Basic realm="x", Bearer scope="a"', Challenge(401, scope="a")),
        ('Negotiate abcd==, Bearer scope="a", Basic realm=y', Challenge(401, scope="a")),
        ('Digest realm="Bearer scope=no, Bearer scope=\\"x\\""', Challenge(401)),
        ('Bearer error_description="says \\"no\\", twice", scope="a"', Challenge(401, scope="a")),
        ('Bearer scope="a", scope="b"', Challenge(401, scope="a")),
        ('"=,, Bearer , ;scope=a', Challenge(401, scope="a")),
        ('DPoP error="use_dpop_nonce"', Challenge(401, "use_dpop_nonce", bound=True)),
        ('DPoP algs="ES256", Bearer scope="a"', Challenge(401, scope="a")),
        ('Bearer scope="a", Bearer scope="b"', Challenge(401, scope="a")),
    ],
)
def test_what_a_refusal_says(header: str, expected: Challenge) -> None:
    assert challenge_of(401, header) == expected


def test_a_403_counts_only_if_it_asks_for_more_rights() -> None:
    more = challenge_of(403, f'Bearer error="insufficient_scope", scope="a b", resource_metadata="{METADATA}"')
    assert more == Challenge(403, "insufficient_scope", "a b", METADATA)
    assert more is not None
    assert more.wants_scope
    assert challenge_of(403, 'Bearer error="invalid_token"') is None
    assert challenge_of(403, "") is None
    assert challenge_of(200, "Bearer") is None


@given(st.text(alphabet=' ,="\\abcBearer;:'))
def test_any_header_is_taken_in(header: str) -> None:
    for scheme, parameters in challenges(header):
        assert scheme == scheme.lower()
        assert all(name == name.lower() for name in parameters)
