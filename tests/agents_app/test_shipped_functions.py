"""The time of the functions that come with the application: twice the text takes at most about twice as long."""

import contextlib
import inspect
import time

import pytest

from agents_app import agent_tools
from agents_app.registry import Kind, registry

KINDS = (Kind.TOOL, Kind.WORKFLOW, Kind.SCORER, Kind.PROCESSOR)
# Texts that repeat what a pattern or a loop could search again and again.
UNITS = ("a", "a.", "@", "a@", "a@a.", "[", "[a", "]", "http://", "\n", "a\n", " ", "a ", ". ", "(", "9", "\u0130")
LENGTH = 100_000
MAX_RATIO = 12  # of the times of four times the text and of the text; 16 is quadratic
NEGLIGIBLE_SECONDS = 0.05


def shipped_functions():
    for kind in KINDS:
        for entry in registry.entries(kind):
            function = getattr(entry.target, "run", entry.target)
            if inspect.getmodule(function) is agent_tools:
                yield entry.key, function
    yield from registry.get(Kind.INTEGRATION_PROVIDER, "text").target.items()


FUNCTIONS = dict(shipped_functions())


def arguments(function, text):
    """Return a long text for each parameter that takes one."""
    values = {str: text, list[str]: [text] * 10 + [*text[:5000]]}
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {parameter.name: values[parameter.annotation] for parameter in parameters if parameter.annotation in values}


def seconds(function, text):
    values = arguments(function, text)
    start = time.thread_time()
    with contextlib.suppress(ValueError):
        function(**values)
    return time.thread_time() - start


def test_all_kinds_of_functions_are_timed():
    assert {"mask-email", "cites-source", "text-search", "word-frequency", "case_upper"} <= {*FUNCTIONS}


@pytest.mark.parametrize("key", FUNCTIONS)
def test_a_shipped_function_takes_linear_time(key):
    function = FUNCTIONS[key]
    for unit in UNITS:
        if seconds(function, unit * (LENGTH // 20)) > NEGLIGIBLE_SECONDS * 20:  # do not wait for a quadratic function
            pytest.fail(f"'{unit}' repeated takes long already at {LENGTH // 20:,} characters.")
        longer = seconds(function, unit * (4 * LENGTH // len(unit)))
        if longer > NEGLIGIBLE_SECONDS:
            shorter = min(seconds(function, unit * (LENGTH // len(unit))) for _ in range(3))
            if longer >= MAX_RATIO * shorter:  # on a busy machine, a single measurement may be twice as long
                longer = seconds(function, unit * (4 * LENGTH // len(unit)))
            assert longer < MAX_RATIO * shorter, unit


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Write to ada@example.org.", "Write to [e-mail]"),
        ("ada.l+x@mail.example.co.uk, bob@b.de", "[e-mail], [e-mail]"),
        ("a@b.c+d@e.f", "[e-mail][e-mail]"),
        (f"{'x' * 500}@example.org", "[e-mail]"),
        ("a@b@c.de", "a@[e-mail]"),
        ("@ada and ada@ are not addresses", "@ada and ada@ are not addresses"),
    ],
)
def test_mask_email_replaces_addresses(text, masked):
    assert agent_tools.mask_email(text) == masked


@pytest.mark.parametrize(
    ("answer", "score"),
    [("See [1].", 1.0), ("See https://example.org", 1.0), ("See [the [inner] one", 1.0), ("No [source", 0.0)],
)
def test_cites_source_finds_urls_and_brackets(answer, score):
    assert agent_tools.cites_source(answer) == score
