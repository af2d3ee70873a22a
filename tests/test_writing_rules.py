"""The rules of CONTRIBUTING.md for names, docstrings and sizes that a program can check."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
APPS = ["agentcms", *sorted(path.name for path in PROJECT.glob("*_app"))]
FOLDERS = [*APPS, "benchmarks", "clients", "scripts", "tests"]

MAX_FUNCTION_LINES = 25  # without the docstring
MAX_MODULES = 15  # of a package, without __init__

FORBIDDEN_BEGINNING = re.compile(r"(What|Whether|Who|Whose|How|That|Those|Which|Where)\b")
# Elsewhere it is "Raise ValueError."
THIRD_PERSON = re.compile(r"(?:^|\. |\n)\s*(?:Raises|Returns|Yields) [A-Za-z`]")
# Participles and pronouns that name nothing.
FORBIDDEN_NAMES = {"asked", "each", "found", "held", "kept", "moment", "picture", "said", "shown", "told", "wanted"}
# Names that do not say what they name, in the words of which nobody finds the code of a subject.
UNCLEAR = """
    ALONE Activated AgentShape Asked Asking Building Built ButtonsMiddleware CALLER CannotBuild Checked Circle Column
    Copy Cut Decided
    EditForm Family FiguresView Held JSONLines Kept KeptAnswer KeptText LOCK Lines Lost MAKERS MANY
    MayReadFigures NotedScheduler ONE ObserveMiddleware Offer OpenedForm Performance Places Plan Prepared
    Processing ProgramsMiddleware REASONS REFUSALS REPEATS RawJSON Refusal Refused Repeated RunFault SANE_ID SHARED
    SOME SPARED STAND_IN Said ShapeError SignInTries Sketch Spelled StaffOnly StandIn StoredAgent StrictJSON THESE
    TOTAL Taken Throttle Told UNSAID Wakeups Wanted Warning Whole Words Writer Writes agent_reply announced
    ask_the_shape asked_by body_object ceiling chore count_alone count_kept delete_some enqueue_once_per fault_in
    faulty forgive gathering generated give_back goes_live in_database in_thread in_turn innermost is_kept is_passing
    json_reply kept_on kept_secret key_of known_already last_movers look_again_if_nothing may may_all
    may_anything mend named_from naming number_of of_run offered on_stop on_the_wire own_message page_body
    page_text pair_versions place_of push_out read_agent read_anew read_body read_edit read_new read_new_agent
    read_parts recalled_key refuse_circle refuse_warnings refuse_what_is_forbidden_now require_granted said_by
    saw saying settle settled splice stand_in start_once still_holds storable take_in takes_file tell_to_stop
    to_body told_so_far unwritten use_is_noted verdicts waiting_for walk_text wire_time with_prefix
    with_recalled_key
"""
UNCLEAR_NAMES = set(UNCLEAR.split())
# Django and Celery look for these by name, each module has its own logger, and each script its own `main`.
REPEATED_NAMES = {"Command", "DatabaseWrapper", "User", "app_name", "log", "logger", "main", "register", "urlpatterns"}
# Functions of two applications that mean the same in both, most of them views.
SHARED_FUNCTIONS = """
    archive compare create delete edit export get_agent get_job get_many_json lock_deleted_agent
    progress purge restore review run scorer truncate_text unarchive upload version_list view
"""
SHARED_FUNCTION_NAMES = {*REPEATED_NAMES, *SHARED_FUNCTIONS.split()}


def python_files(folder: str) -> list[Path]:
    return sorted(path for path in (PROJECT / folder).rglob("*.py") if "migrations" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def place(path: Path, line: int) -> str:
    return f"{path.relative_to(PROJECT)}:{line}"


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed(path)):
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_documented and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def defined_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every name that a file gives to something: variables, parameters, functions, classes and attributes."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def public_definitions(path: Path) -> Iterator[str]:
    """The public functions, classes and constants that a module defines."""
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring_lines


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_begin_with_a_verb_or_a_noun(folder):
    faults = [
        f"{place(path, line)} {text.splitlines()[0]}"
        for path in python_files(folder)
        for line, text in docstrings(path)
        if FORBIDDEN_BEGINNING.match(text)
    ]

    assert faults == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_are_in_the_imperative(folder):
    faults = [
        place(path, line)
        for path in python_files(folder)
        for line, text in docstrings(path)
        if THIRD_PERSON.search(text)
    ]

    assert faults == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_say_what_they_hold(folder):
    faults = [
        f"{place(path, line)} {name}"
        for path in python_files(folder)
        for line, name in defined_names(path)
        if name.strip("_") in FORBIDDEN_NAMES
    ]

    assert faults == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_functions_and_classes_have_clear_names(folder):
    faults = [
        f"{place(path, line)} {name}"
        for path in python_files(folder)
        for line, name in defined_names(path)
        if name.strip("_") in UNCLEAR_NAMES
    ]

    assert faults == []


@pytest.mark.parametrize("app", APPS)
def test_a_public_name_means_one_thing_in_an_app(app):
    counts = Counter(
        name for path in python_files(app) for name in public_definitions(path) if "management" not in path.parts
    )

    assert [name for name, count in counts.items() if count > 1 and name not in REPEATED_NAMES] == []


def test_a_class_has_its_name_alone_in_all_applications():
    places = defaultdict(set)
    for path in (path for app in APPS for path in python_files(app) if "management" not in path.parts):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(PROJECT)))

    assert {name: files for name, files in places.items() if len(files) > 1 and name not in REPEATED_NAMES} == {}


def test_a_function_of_two_applications_means_the_same_in_both():
    apps = defaultdict(set)
    for app in APPS:
        for path in (path for path in python_files(app) if "management" not in path.parts):
            for node in parsed(path).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                    apps[node.name].add(app)

    assert {name: both for name, both in apps.items() if len(both) > 1 and name not in SHARED_FUNCTION_NAMES} == {}


@pytest.mark.parametrize("app", APPS)
def test_packages_have_at_most_fifteen_modules(app):
    counts = Counter(path.parent for path in python_files(app) if path.name != "__init__.py")

    assert {str(folder): count for folder, count in counts.items() if count > MAX_MODULES} == {}


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_functions_are_short(folder):
    faults = [
        f"{place(path, node.lineno)} {node.name}: {lines} lines"
        for path in python_files(folder)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := function_lines(node)) > MAX_FUNCTION_LINES
    ]

    assert faults == []
