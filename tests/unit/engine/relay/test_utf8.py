from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.engine.relay import envelope
from callboard.engine.relay.envelope import check_utf8


@given(st.binary(max_size=40) | st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_utf8_is_told_from_what_is_not_whatever_its_size(data: bytes) -> None:
    def is_utf8(check: Any) -> bool:
        try:
            check()
        except UnicodeDecodeError:
            return False
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "_LARGE", 4)
        assert is_utf8(lambda: check_utf8(data)) == is_utf8(data.decode)
