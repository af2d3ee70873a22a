import json
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcms.wire import json_parser
from agentcms.wire.canonical import canonical
from agentcms.wire.json_parser import MAX_FAULTS, InvalidJSON, parse_strict_json
from agentcms.wire.validation import find_json_faults
from tests.agentcms.wire.test_canonical import VALUES


@given(VALUES)
def test_json_is_parsed_without_changes(value):
    assert canonical(parse_strict_json(json.dumps(value).encode())) == canonical(value)
    assert canonical(parse_strict_json(json.dumps(value, ensure_ascii=False).encode())) == canonical(value)


@given(st.binary(max_size=50) | st.text('[]{}":,0123456789.eE+-\\u\ud800nulltrefas ', max_size=50))
def test_random_bytes_only_raise_invalid_value(data):
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")

    with suppress(InvalidJSON):
        assert list(find_json_faults(parse_strict_json(data))) == []


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "b.c", "'c' is repeated"),
        ('{"a": NaN}', "a", "NaN is not JSON"),
        ('{"a": [-Infinity]}', "a[0]", "-Infinity is not JSON"),
        ('{"a": 1e400}', "a", "fit a double"),
        ('{"a": -1e400}', "a", "fit a double"),
        ('{"a": 1e-400}', "a", "so small"),
        ('{"a": 9223372036854775808}', "a", "must be between"),
        ('{"a": 10000000000000000000001}', "a", "must be between"),
        ('{"a": -9223372036854775809}', "a", "must be between"),
        ('{"a": ' + "9" * 100_000 + "}", "a", "must be between"),
        ('{"a": "\\ud800"}', "a", "surrogate"),
        ('{"a": "\\udc00\\ud800"}', "a", "surrogate"),
        ('{"\\ud800": 1}', "\\ud800", "surrogate"),
        ('{"a": "\\u0000"}', "a", "NUL"),
        ("[" * 100_000, "", "64 levels"),
        ('{"a":' * 100_000, "", "64 levels"),
    ],
)
def test_a_value_that_cannot_round_trip_is_refused_with_its_path(text, field, words):
    with pytest.raises(InvalidJSON) as caught:
        parse_strict_json(text.encode())

    assert caught.value.faults[0].field == field
    assert words in caught.value.faults[0].message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1, column 1"),
        (b'{"a":\n  x}', "line 2, column 3"),
        (b"[1,]", "line 1, column "),
        (b"[1] 2", "line 1, column 5"),
        (b"{'a': 1}", "line 1, column 2"),
        (b'["a\nb"]', "line 1, column 4"),
        (b"01", "line 1, column 2"),
        (b'["\xe9"]', "not valid UTF-8 at line 1, column 3"),
        (b'[\n"\xc3\xa9\xed\xa0\x80"]', "not valid UTF-8 at line 2, column 3"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "not valid UTF-8"),
        ('{"a": 1}'.encode("utf-16-le"), "line 1, column 2"),
        (b"// no\n{}", "line 1, column 1"),
    ],
)
def test_a_syntax_error_names_line_and_column(data, words):
    with pytest.raises(InvalidJSON, match=words):
        parse_strict_json(data)


@pytest.mark.parametrize(
    "text",
    [
        '{"__proto__":{"constructor":1}}',
        "[9223372036854775807,-9223372036854775808]",
        "[5e-324,1e-07,0,1e+22]",
        '["👩‍👩‍👧","\u2028","\x7f"]',
        "[" * 64 + "]" * 64,
    ],
)
def test_boundary_values_round_trip(text):
    assert canonical(parse_strict_json(text.encode())) == text


@pytest.mark.parametrize("number", [1e19, 1.5e19, -1e20, 1e22, 2.0**70, 1e308, 1.7976931348623157e308])
def test_a_large_double_is_accepted_with_all_its_digits(number):
    """JavaScript writes 1e20 so, and PostgreSQL returns it so."""
    value = parse_strict_json(f"[{Decimal(repr(number)):f}]".encode())

    assert value == [number]
    assert type(value[0]) is float


@pytest.mark.parametrize("digits", ["9223372036854775808", "100000000000000000001", "9" * 309, "1" + "0" * 309])
def test_a_large_integer_that_a_double_would_change_is_refused(digits):
    with pytest.raises(InvalidJSON, match="A whole number must be between"):
        parse_strict_json(f"[{digits}]".encode())


def test_zero_in_any_spelling_is_not_too_small():
    assert parse_strict_json(b"[0e0, 0.000, -0.0e-999, 0E+5]") == [0, 0, 0, 0]


def test_json_deeper_than_64_levels_is_refused_unless_the_limit_is_higher():
    text = b"[" * 65 + b"]" * 65

    with pytest.raises(InvalidJSON, match="64 levels"):
        parse_strict_json(text)
    assert parse_strict_json(text, levels=65)


def test_at_most_a_hundred_errors_are_reported():
    with pytest.raises(InvalidJSON) as caught:
        parse_strict_json(b"[" + b",".join([b"1e400"] * 10_000) + b"]")

    assert len(caught.value.faults) == MAX_FAULTS


@pytest.mark.parametrize(
    "text", ['{"a": [1, [2], {}], "b": "x"}', "[[],[],[],[],[],[]]", '{"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}']
)
def test_the_number_of_values_is_limited(monkeypatch, text):
    monkeypatch.setattr(json_parser, "MAX_VALUES", 7)

    assert parse_strict_json(text.encode()) == json.loads(text)
    with pytest.raises(InvalidJSON, match="JSON must not have more than 7 values"):
        parse_strict_json(f"[{text}]".encode())


def test_commas_in_texts_are_no_values(monkeypatch):
    monkeypatch.setattr(json_parser, "MAX_VALUES", 7)

    assert parse_strict_json(b'["1,2,3,4,5,6,7,8,[[[{{{"]') == ["1,2,3,4,5,6,7,8,[[[{{{"]
