"""The text that the model reads for a signal."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_app.configuration.schema import ConfigError
from memory_app.history.signal_markup import Signal, attribute_text, signal_text, validate_signal
from tests.conftest import DRILL

# XML has no control characters, and reads each of its line breaks as "\n", in attributes as a space.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
SIGNALS = st.builds(
    Signal,
    type=st.sampled_from(["user", "user-message", "reactive", "system-reminder", "notification"]) | NAMES,
    contents=TEXTS,
    attributes=st.dictionaries(NAMES, VALUES, max_size=4),
    tag_name=st.just("") | NAMES,
)


def test_a_message_of_a_user_with_attributes():
    signal = Signal("user", "Can we simplify the API surface?", attributes={"name": "Devin", "from": "slack"})

    assert signal_text(signal) == '<user name="Devin" from="slack">Can we simplify the API surface?</user>'


def test_a_reactive_signal_is_a_system_reminder():
    text = "User X has left a new PR comment asking for a smaller API surface."
    signal = Signal("reactive", text, attributes={"source": "github", "pr": "123", "draft": None})

    assert signal_text(signal) == f'<system-reminder source="github" pr="123">{text}</system-reminder>'


def test_a_signal_without_text_is_an_empty_element():
    assert signal_text(Signal("ping", " \n", attributes={"n": 1.0, "ok": True})) == '<ping n="1" ok="true" />'


def test_the_words_of_a_user_without_attributes_are_plain_text():
    assert signal_text(Signal("user-message", "  1 < 2 & so on ")) == "1 < 2 & so on"


@pytest.mark.parametrize("number", range(4 if DRILL else 1))
@settings(max_examples=2500 if DRILL else 80)
@given(signal=SIGNALS)
def test_every_signal_parses_as_what_was_sent(number, signal):
    validate_signal(signal)
    text = signal_text(signal)
    attributes = {name: attribute_text(value) for name, value in signal.attributes.items() if value is not None}
    if signal.is_from_user and not attributes:
        assert text == signal.contents.strip()
        return

    element = ElementTree.fromstring(text)

    assert (element.tag, element.text or "", element.attrib) == (signal.tag, signal.contents.strip(), attributes)


@pytest.mark.parametrize(
    ("signal", "path"),
    [
        (Signal("a b", "x"), "signal.type"),
        (Signal("user", "x", tag_name="1a"), "signal.tagName"),
        (Signal("user", "x", attributes={'a"': "x"}), 'signal.attributes.a"'),
        (Signal("user", "x", attributes={"a": ["x"]}), "signal.attributes.a"),  # type: ignore[dict-item]
    ],
)
def test_what_the_markup_cannot_have_is_refused_with_its_path(signal, path):
    with pytest.raises(ConfigError) as refused:
        validate_signal(signal)

    assert [issue.field for issue in refused.value.issues] == [path]
