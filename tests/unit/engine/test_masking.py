"""What is masked, and for how long."""

from callboard.engine.masking import NEWEST, Masking


def test_what_was_learned_stays_masked_and_what_passes_is_forgotten_in_time() -> None:
    masking = Masking()
    masking.learn(["a-secret-for-ever"])
    for number in range(NEWEST + 5):
        masking.learn_passing("one", [f"token-number-{number:04}", ""])
    masking.learn_passing("two", ["token-of-another"])
    assert masking.mask_text("a-secret-for-ever token-of-another") == "*** ***"
    assert masking.mask_text("token-number-0004") == "token-number-0004"
    assert masking.mask_text("token-number-0005") == "***"
    assert masking.mask_payload(b'"token-number-0036"') == b'"***"'


def test_the_same_values_change_nothing() -> None:
    masking = Masking()
    masking.learn_passing("one", ["token-token-token"])
    before = masking._redactor
    masking.learn_passing("one", ["token-token-token"])
    masking.learn(())
    assert masking._redactor is before
