"""Texts of people beside other text, where markup cannot isolate them."""

import pytest

from agentcms.web.text_direction import isolate_text


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("Refund desk…", "Refund desk…"),
        ("\u202eksed", "ksed"),
        ("a\u2069\u202eb", "ab"),
        ("שלום", "\u2068שלום\u2069"),
    ],
)
def test_a_text_turns_nothing_that_is_written_beside_it(text, isolated):
    assert isolate_text(text) == isolated
