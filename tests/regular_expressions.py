"""Regular expressions of the code, and texts on which a slow one takes longer than its length explains."""

from __future__ import annotations

import ast
import os
import re
import re._parser as pattern_parser
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = ("agentcms", "clients", *sorted(path.name for path in ROOT.glob("*_app")))
FUNCTIONS = ("compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
# Names of Django that take a pattern as their first argument.
OTHER_CALLS = ("RegexValidator", "re_path", "RegexField")

LENGTHS = (8, 12, 16, 20, 24, 32, 128, 512, 2048, 4096)
MAX_CHARACTERS = 10 if os.environ.get("DRILL") else 3  # of a pattern that are repeated alone and in pairs
MAX_PREFIXES = 1000 if os.environ.get("DRILL") else 40  # of a pattern; one with many alternatives has hundreds
SUSPICIOUS_SECONDS = 0.002  # for the last length; a linear pattern takes a fifth, a quadratic one at least twice that
SLOW_SECONDS = 0.05  # for any length
MEASUREMENTS = 4  # each of which a slow pattern needs too long for
LINEAR_RATIO = 8.0  # of the times of two lengths, one four times the other; 16 is quadratic


class CodePattern(NamedTuple):
    """A pattern in the code. `text` is None where it is put together at run time."""

    place: str  # path and function or line
    text: str | None


def code_patterns() -> Iterator[CodePattern]:
    """Yield every pattern that the applications pass to `re` or to Django, except in migrations."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts and "node_modules" not in path.parts:
                yield from patterns_of_module(ast.parse(path.read_text()), str(path.relative_to(ROOT)))


def patterns_of_module(tree: ast.Module, path: str) -> Iterator[CodePattern]:
    reject_other_names(tree, path)
    for parent in ast.walk(tree):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | ast.ClassDef):
            for node in own_nodes(parent):
                if isinstance(node, ast.Call) and takes_pattern(node.func):
                    yield CodePattern(f"{path}:{getattr(parent, 'name', '')}", pattern_text(node))


def own_nodes(parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, class or module without those of the functions and classes in it."""
    for child in ast.iter_child_nodes(parent):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from own_nodes(child)
        else:
            for decorator in child.decorator_list:
                yield decorator
                yield from own_nodes(decorator)


def takes_pattern(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr in FUNCTIONS
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in OTHER_CALLS


def pattern_text(call: ast.Call) -> str | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg in {"pattern", "regex"}]
    value = (named or call.args)[0] if named or call.args else None
    text = value.value if isinstance(value, ast.Constant) else None
    return text.decode() if isinstance(text, bytes) else text


def reject_other_names(tree: ast.Module, path: str) -> None:
    """Raise AssertionError if a module imports patterns in a form that `takes_pattern` does not see."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in {"re", "regex", "re2"}:
            raise AssertionError(f"{path}: write `import re` and `re.{node.names[0].name}`.")
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.name not in {"regex", "re2"}, f"{path}: use `re`, which the tests can read."
                assert alias.name != "re" or alias.asname is None, f"{path}: import `re` under its own name."


# --- Attacks


def find_slow_text(pattern: re.Pattern[str]) -> str | None:
    """Return a text on which a pattern needs far more than four times the time for four times the length, or None."""
    for prefix, unit, suffix in attack_forms(pattern):
        if is_superlinear(pattern, lambda length, form=(prefix, unit, suffix): build_text(*form, length)):
            return build_text(prefix, unit, suffix, 32)
    return None


def build_text(prefix: str, unit: str, suffix: str, length: int) -> str:
    return prefix + unit * (length // len(unit)) + suffix


def is_superlinear(pattern: re.Pattern[str], text_of_length: Callable[[int], str]) -> bool:
    for length in LENGTHS:
        seconds = match_seconds(pattern, text_of_length(length))
        if seconds > SLOW_SECONDS and is_always_above(SLOW_SECONDS, pattern, text_of_length(length)):
            return True  # exponential, or a high power
    if seconds < SUSPICIOUS_SECONDS:
        return False
    once, four_times = text_of_length(LENGTHS[-1]), text_of_length(4 * LENGTHS[-1])
    seconds = min(match_seconds(pattern, once) for _ in range(3))
    return seconds > SUSPICIOUS_SECONDS and is_always_above(LINEAR_RATIO * seconds, pattern, four_times)


def is_always_above(limit: float, pattern: re.Pattern[str], text: str) -> bool:
    """Return whether each of several measurements is above a limit. On a busy machine, a single one may be."""
    return all(match_seconds(pattern, text) > limit for _ in range(MEASUREMENTS))


def match_seconds(pattern: re.Pattern[str], text: str) -> float:
    """Return the CPU time in which a pattern is looked for everywhere in a text, and compared with all of it."""
    start = time.thread_time()
    for _ in pattern.finditer(text):
        pass
    pattern.fullmatch(text)
    return time.thread_time() - start


def attack_forms(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (prefix, unit, suffix) of texts that repeat what a part of the pattern matches and then fail."""
    characters = [*dict.fromkeys(sample_characters(pattern_parser.parse(pattern.pattern, pattern.flags)))][
        :MAX_CHARACTERS
    ]
    characters = [*dict.fromkeys([*characters, "a", "0", " "])]
    prefixes = evenly([*dict.fromkeys(["", *sample_prefixes(pattern)])], MAX_PREFIXES)
    units = [*characters, *(first + second for first in characters for second in characters if first != second)]
    units += prefixes[1:]
    for unit in units:
        for prefix in prefixes:
            for suffix in ("", "\x01"):
                yield prefix, unit, suffix


def evenly(texts: list[str], count: int) -> list[str]:
    """Return at most so many of the texts, the first among them, from all parts of the list."""
    return texts[:: -(-len(texts) // count)]


def sample_prefixes(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield short texts that the pattern matches up to each of its parts."""
    parsed = pattern_parser.parse(pattern.pattern, pattern.flags)
    for branch in branches(parsed):
        text = ""
        for part in branch:
            text += sample_text(part)
            yield text[:64]


def branches(parsed: Any) -> Iterator[list[Any]]:
    """Yield the alternatives of a pattern, without those of inner groups."""
    items = [*parsed]
    if len(items) == 1 and items[0][0] is pattern_parser.BRANCH:
        for branch in items[0][1][1]:
            yield [*branch]
    else:
        yield items


def sample_text(part: Any) -> str:
    """Return a text that one part of a pattern matches, or "" for assertions."""
    kind, value = part
    if kind is pattern_parser.LITERAL:
        return chr(value)
    if kind in (pattern_parser.MAX_REPEAT, pattern_parser.MIN_REPEAT, pattern_parser.POSSESSIVE_REPEAT):
        least, _, inner = value
        return "".join(map(sample_text, inner)) * max(least, 1)
    if kind is pattern_parser.SUBPATTERN:
        return "".join(map(sample_text, value[-1]))
    if kind is pattern_parser.BRANCH:
        return "".join(map(sample_text, value[1][0]))
    if kind is pattern_parser.ASSERT and value[0] < 0:
        return "".join(map(sample_text, value[1]))
    return next(sample_characters([part]), "")


SAMPLES = {
    pattern_parser.CATEGORY_DIGIT: "0",
    pattern_parser.CATEGORY_NOT_DIGIT: "a",
    pattern_parser.CATEGORY_SPACE: " ",
    pattern_parser.CATEGORY_NOT_SPACE: "a",
    pattern_parser.CATEGORY_WORD: "a",
    pattern_parser.CATEGORY_NOT_WORD: "-",
}


def sample_characters(parsed: Any) -> Iterator[str]:
    """Yield characters that the pattern names: its literals and one of each class."""
    for kind, value in parsed:
        if kind is pattern_parser.LITERAL:
            yield chr(value)
        elif kind is pattern_parser.NOT_LITERAL:
            yield "a" if value != ord("a") else "b"
        elif kind is pattern_parser.RANGE:
            yield chr(value[0])
        elif kind is pattern_parser.CATEGORY:
            yield SAMPLES[value]
        elif kind is pattern_parser.ANY:
            yield "a"
        elif kind is pattern_parser.IN:
            yield from characters_of_class(value)
        else:
            for inner in inner_patterns(value):
                yield from sample_characters(inner)


def characters_of_class(items: list[Any]) -> Iterator[str]:
    named = [item for item in items if item[0] is not pattern_parser.NEGATE]
    if len(named) == len(items):
        yield from sample_characters(named[:20])
        return
    excluded = {*sample_characters(named[:20])}
    yield from [character for character in "a0 -" if character not in excluded][:2]
    yield from sorted(excluded)


def inner_patterns(value: Any) -> Iterator[Any]:
    """Yield the patterns inside the argument of a group, a repetition, a branch or an assertion."""
    if isinstance(value, pattern_parser.SubPattern):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from inner_patterns(item)
