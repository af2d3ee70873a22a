"""Arrows point down: between the apps, and inside each of them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
FLOORS = ["agentcms floor", "access_app", "jobs_app", "agents_app", "versions_app", "runs_app", "agentcms top"]
APPS = FLOORS[1:-1]
# The modules of `agentcms` that wire everything together or run it. The others are the floor and know of no app.
TOP = {"__init__", "apps", "celery", "checks", "settings", "urls", "wsgi"}
TOP |= {"api_operations", "api_schema", "api_schema_runs", "api_schema_views", "api_schema_words"}
TOP |= {"figures", "health", "metrics", "observe"}
TOP |= {"children", "embedded", "prepare", "run", "supervisor", "watchdog", "worker"}

HTTP = ("rest_framework", "django.http", "django.shortcuts", "django.views", "django_htmx")
# What answers requests, or helps with answering; every other module of an app is the domain, or a form of it.
ANSWERING = re.compile(
    r"(admin|api|urls|views)(_\w+)?|\w+_api|http|middleware|pages|authentication|cors|staff|throttling"
    r"|asking|columns|listing|once"
)
# What the domain sets off; those that connect it and start it stand above too.
SET_OFF = re.compile(r"\w+_app\.(tasks|signals)\b")
ABOVE = {"apps", "signals", "tasks"}


def modules(app: str) -> list[Path]:
    return sorted(path for path in (PROJECT / app).rglob("*.py") if "migrations" not in path.parts)


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, inside functions too, but for those that only a type checker reads."""
    return tuple(imports_of(path))


def imports_of(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    typing = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    unread = {id(inner) for node in typing for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in unread:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floor_of(module: str) -> int | None:
    """How high a module of ours stands, or None for somebody else's."""
    package, _, rest = module.partition(".")
    if package == "agentcms":
        return FLOORS.index("agentcms top" if rest.partition(".")[0] in TOP else "agentcms floor")
    return FLOORS.index(package) if package in FLOORS else None


def file_of(module: str) -> Path | None:
    """The file of one of our modules; `module` may also name something in it."""
    for name in (module, module.rpartition(".")[0]):
        if (path := PROJECT.joinpath(*name.split(".")).with_suffix(".py")).exists():
            return path
    return None


def reached(module: str) -> Iterator[tuple[str, str]]:
    """Each import of a module and of all modules of ours that it leads to, with the module where it stands."""
    waiting, known = [file_of(module)], {file_of(module)}
    while waiting:
        path = waiting.pop()
        for imported in imports(path):
            yield module_of(path), imported
            inner = file_of(imported) if floor_of(imported) is not None else None
            if inner and inner not in known:
                known.add(inner)
                waiting.append(inner)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PROJECT).with_suffix("").parts)


@pytest.mark.parametrize("app", ["agentcms", *APPS])
def test_an_app_imports_only_what_stands_below_it(app):
    upwards = [
        f"{module_of(path)} imports {imported}"
        for path in modules(app)
        for imported in imports(path)
        if (above := floor_of(imported)) is not None and above > (floor_of(module_of(path)) or 0)
    ]

    assert upwards == []


@pytest.mark.parametrize("app", APPS)
def test_the_domain_reaches_no_http(app):
    inside = [module_of(path) for path in modules(app) if not ANSWERING.fullmatch(path.stem)]

    found = {
        f"{module}: {each} imports {imported}"
        for module in inside
        for each, imported in reached(module)
        if imported.startswith(HTTP)
    }

    assert found == set()


@pytest.mark.parametrize("app", APPS)
def test_nothing_of_the_domain_imports_what_it_sets_off(app):
    upwards = [
        f"{module_of(path)} imports {imported}"
        for path in modules(app)
        if not ANSWERING.fullmatch(path.stem) and path.stem not in ABOVE and "management" not in path.parts
        for imported in imports(path)
        if SET_OFF.match(imported)
    ]

    assert upwards == []
