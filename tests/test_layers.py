"""Arrows point down: between the apps, and inside each of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
FLOORS = ["agentcms floor", "access_app", "jobs_app", "agents_app", "versions_app", "runs_app", "agentcms top"]
APPS = FLOORS[1:-1]
# The modules of `agentcms` that wire everything together or run it. The others are the floor and know of no app.
TOP = {"__init__", "celery", "settings", "urls", "wsgi"}
TOP |= {"children", "embedded", "prepare", "run", "supervisor", "watchdog", "worker"}

# What speaks HTTP, or belongs to those who do, stands on top of an app's domain.
HTTP_LIBRARIES = ("rest_framework", "django.http", "django.shortcuts", "django.views", "django_htmx")
DOMAIN = {
    "access_app": {"models", "roles"},
    "jobs_app": {"models"},
    "agents_app": {"changes", "models", "references", "registry", "shapes"},
    "versions_app": {"diffs", "models", "pointers", "retention", "triggers"},
}
RECEIVERS = {"signals", "tasks", "work"}  # they import the domain, and no HTTP


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


@pytest.mark.parametrize("app", DOMAIN)
def test_the_domain_knows_nothing_of_http(app):
    inner = {PROJECT / app / f"{name}.py" for name in DOMAIN[app] | RECEIVERS}
    spoken = [
        f"{module_of(path)} imports {imported}"
        for path in inner & set(modules(app))
        for imported in imports(path)
        if imported.startswith(HTTP_LIBRARIES)
    ]

    assert spoken == []


@pytest.mark.parametrize("app", DOMAIN)
def test_the_domain_imports_nothing_that_stands_on_it(app):
    upwards = [
        f"{app}.{name} imports {imported}"
        for name in DOMAIN[app]
        for imported in imports(PROJECT / app / f"{name}.py")
        if imported.startswith(f"{app}.") and imported.split(".")[1] not in DOMAIN[app]
    ]

    assert upwards == []


@pytest.mark.parametrize("app", DOMAIN)
def test_forms_stand_below_what_answers_requests(app):
    above = ("admin", "api", "http", "pages", "urls", "urls_api", "views")
    upwards = [
        f"{module_of(path)} imports {imported}"
        for path in modules(app)
        if path.stem in {"fields", "forms"}
        for imported in imports(path)
        if imported.startswith(tuple(f"{app}.{name}" for name in above))
    ]

    assert upwards == []
