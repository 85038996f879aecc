from callboard.core.errors import FIXES
from callboard.core.meanings import MEANINGS


def test_every_code_is_explained():
    assert set(MEANINGS) == set(FIXES)


def test_each_meaning_is_one_sentence():
    for code, meaning in MEANINGS.items():
        assert meaning.endswith("."), code
        assert meaning[0].isupper(), code
        assert ". " not in meaning, code
