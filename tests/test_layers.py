"""Arrows point down: between the apps, and inside each of them."""

import ast
import re
from collections.abc import Iterator
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
DOMAIN = [
    "access_app.models",
    "access_app.roles",
    "jobs_app.models",
    "jobs_app.tasks",
    "agents_app.answers",
    "agents_app.bodies",
    "agents_app.changes",
    "agents_app.held",
    "agents_app.index",
    "agents_app.models",
    "agents_app.querysets",
    "agents_app.references",
    "agents_app.registry",
    "agents_app.repeats",
    "agents_app.shapes",
    "agents_app.sub_agents",
    "agents_app.wanted",
    "agents_app.words",
    "versions_app.answers",
    "versions_app.exchange",
    "versions_app.exchange_records",
    "versions_app.diffs",
    "versions_app.models",
    "versions_app.pointers",
    "versions_app.retention",
    "versions_app.signals",
    "versions_app.tasks",
    "versions_app.triggers",
    "runs_app.building",
    "runs_app.calls",
    "runs_app.engine",
    "runs_app.generated",
    "runs_app.history",
    "runs_app.listed",
    "runs_app.performing",
    "runs_app.providers",
    "runs_app.resolution",
    "runs_app.scoring",
    "runs_app.shown",
    "runs_app.spans",
    "runs_app.starting",
    "runs_app.streams",
    "runs_app.tasks",
    "runs_app.transcript",
    "runs_app.workflows",
    "runs_app.writer",
]


def modules(app: str) -> list[Path]:
    return sorted(path for path in (PROJECT / app).rglob("*.py") if "migrations" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, inside functions too, but for those that only a type checker reads."""
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


@pytest.mark.parametrize("module", DOMAIN)
def test_the_domain_reaches_no_http(module):
    assert [f"{each} imports {imported}" for each, imported in reached(module) if imported.startswith(HTTP)] == []


@pytest.mark.parametrize("app", APPS)
def test_forms_stand_below_what_answers_requests(app):
    above = re.compile(rf"{app}\.(admin|api|\w+_api|http|pages|urls|views)\b")
    upwards = [
        f"{module_of(path)} imports {imported}"
        for path in modules(app)
        if path.stem.startswith(("fields", "forms"))
        for imported in imports(path)
        if above.match(imported)
    ]

    assert upwards == []
