import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcms.wire.canonical import canonical, normalize, sha256_hex

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\u241f"), max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def as_jsonb(value):
    """Return the value as jsonb would: plain decimal numbers, shorter keys first."""

    def plain(digits):
        number = format(Decimal(digits), "f")
        return number.lstrip("-") if not Decimal(digits) else number

    text = json.dumps(value, ensure_ascii=False)
    numbers = json.loads(text, parse_float=lambda digits: Number(plain(digits)))
    return json.loads(json.dumps(shorter_first(numbers), default=str).replace('"\\u241f', "").replace('\\u241f"', ""))


class Number(str):
    def __new__(cls, digits):
        return super().__new__(cls, f"\u241f{digits}\u241f")


def shorter_first(value):
    if isinstance(value, dict):
        return {key: shorter_first(value[key]) for key in sorted(value, key=lambda key: (len(key), key))}
    return [shorter_first(item) for item in value] if isinstance(value, list) else value


@given(VALUES)
def test_the_canonical_text_round_trips(value):
    text = canonical(value)

    assert canonical(json.loads(text)) == text


@given(VALUES)
def test_the_canonical_text_survives_jsonb(value):
    assert canonical(as_jsonb(value)) == canonical(value)


@given(VALUES)
def test_the_canonical_text_survives_a_json_text_column(value):
    assert canonical(json.loads(json.dumps(value))) == canonical(value)


@given(st.dictionaries(TEXTS, VALUES, min_size=2))
def test_the_order_of_keys_does_not_matter(value):
    backwards = dict(reversed(value.items()))

    assert canonical(backwards) == canonical(value)


@given(VALUES)
def test_a_normalized_value_is_returned_unchanged(value):
    once = normalize(value)

    assert normalize(once) is once


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (1e22, 10**22),
        (2.0**60, 1152921504606847000),
        (float(2**63), 9223372036854776000),
        (1e308, int(Decimal("1e308"))),
        ((1, 2), [1, 2]),
    ],
)
def test_equal_json_has_the_same_text(one, other):
    assert canonical({"a": one}) == canonical({"a": other})


@pytest.mark.parametrize(
    ("one", "other"),
    [(True, 1), (False, 0), (None, 0), ("1", 1), ([], {}), ("", None), (1, 1.5), (2**53, 2**53 + 1), (5e-324, 0)],
)
def test_different_json_has_different_texts(one, other):
    assert canonical([one]) != canonical([other])


def test_the_text_is_compact_sorted_and_unescaped():
    assert canonical({"b": [1.0, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'


def test_a_non_finite_number_has_no_text():
    with pytest.raises(ValueError):
        canonical([float("nan")])


def test_the_digest_is_sha256():
    assert sha256_hex("{}") == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
