"""Times of regular expressions: four times the text takes about four times as long."""

import re

import pytest
from django.conf import settings

from agentcms.wire import normal_forms
from agents_app.search import tokenizer
from agents_app.search.snippets import word_pattern
from runs_app.providers.demo_calls import mention_pattern
from runs_app.tool_mocks.mocks import MISMATCH, PATTERNS
from tests.regular_expressions import CodePattern, code_patterns, find_slow_text, patterns_of_module

# Functions that return the patterns which are put together at run time, by the function that does so.
BUILT = {
    "agentcms/wire/normal_forms.py:_too_many_marks": normal_forms._too_many_marks,
    "agentcms/web/static_files.py:compress": lambda: re.compile(settings.WHITENOISE_IMMUTABLE_FILE_TEST),
    "agents_app/search/tokenizer.py:_word_pattern": tokenizer._word_pattern,
    "agents_app/search/snippets.py:word_pattern": lambda: word_pattern("aa aaa ab -"),
    "runs_app/tool_mocks/mocks.py:": lambda: PATTERNS[MISMATCH],
    "runs_app/providers/demo_calls.py:mention_pattern": lambda: mention_pattern("a-aa"),
}


# Reading all modules takes seconds. As parameters, the patterns would be read by every worker of the tests.
@pytest.fixture(scope="module")
def patterns() -> list[CodePattern]:
    return [*code_patterns()]


def test_patterns_of_the_code_take_linear_time(patterns):
    texts = {pattern.text for pattern in patterns if pattern.text is not None}

    slow_texts = {text: find_slow_text(re.compile(text)) for text in sorted(texts)}

    assert {text: slow_text for text, slow_text in slow_texts.items() if slow_text is not None} == {}
    assert len(texts) > 20


@pytest.mark.parametrize("place", BUILT)
def test_a_pattern_built_at_run_time_takes_linear_time(place):
    assert find_slow_text(BUILT[place]()) is None


def test_every_pattern_built_at_run_time_is_tested(patterns):
    assert {pattern.place for pattern in patterns if pattern.text is None} == {*BUILT}


@pytest.mark.parametrize(
    "text",
    [
        r"[\w.+-]+@[\w-]+\.[\w.]+",
        r"(?=[\w*./+-]*\d)[\w*./+=-]{20,}|\b(?:sk|key|AIza)[\w*-]{6,}",
        r"https?://|\[[^\]]+\]",
        r"(?<=://)[^\s/@]*:[^\s/@]*(?=@)",
        r"\s*a\s*(b)?\s*c",
        r"(a+)+b",
        r"<!--.*?-->",
        r"x*y",
    ],
)
def test_a_quadratic_pattern_is_noticed(text):
    assert find_slow_text(re.compile(text)) is not None


def test_patterns_are_found_wherever_they_are():
    module = compile(
        """
import re
from django.core.validators import RegexValidator

WORD = re.compile("a")

class Row:
    key = CharField(validators=[RegexValidator(regex="b")])

    def method(self, name):
        return [re.sub(f"{name}+", "", text) for text in re.findall("c", self.text)]
""",
        "row.py",
        "exec",
        flags=0x400,  # the syntax tree only
    )

    places = {(pattern.place, pattern.text) for pattern in patterns_of_module(module, "row.py")}

    assert places == {("row.py:", "a"), ("row.py:Row", "b"), ("row.py:method", None), ("row.py:method", "c")}


@pytest.mark.parametrize("line", ["from re import compile", "import re as regex", "import regex"])
def test_other_imports_are_refused(line):
    with pytest.raises(AssertionError, match=r"row\.py"):
        [*patterns_of_module(compile(line, "row.py", "exec", flags=0x400), "row.py")]
