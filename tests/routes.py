"""The routes of applications, read from the URL resolver, so that no list of them can be out of date."""

from __future__ import annotations

import re
from typing import NamedTuple

from django.urls import URLPattern, get_resolver

PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


class Route(NamedTuple):
    """A route: its name with its namespace, its path with `<parameters>`, and the methods of its view."""

    name: str
    path: str
    module: str
    methods: tuple[str, ...]

    @property
    def parameters(self) -> list[str]:
        return PARAMETER.findall(self.path)

    @property
    def is_api(self) -> bool:
        return self.path.startswith("api/")

    def address(self, values: dict[str, object]) -> str:
        return "/" + PARAMETER.sub(lambda match: str(values[match[1]]), self.path)


def routes_of(*applications: str) -> list[Route]:
    """Return the named routes whose views are in these applications, API and pages."""
    return [route for route in all_routes() if route.name and route.module.split(".")[0] in applications]


def all_routes() -> list[Route]:
    """Return every route, also those without a name, which is blank then."""
    return [*walk(get_resolver().url_patterns, "", "")]


def walk(patterns, path, namespace):
    for pattern in patterns:
        here = path + str(pattern.pattern)
        if not isinstance(pattern, URLPattern):
            yield from walk(pattern.url_patterns, here, getattr(pattern, "namespace", None) or namespace)
        else:
            view = getattr(pattern.callback, "cls", None)
            methods = [name for name in ("get", "post", "patch", "put", "delete") if hasattr(view, name)]
            methods = tuple(name.upper() for name in methods) or ("GET", "POST")  # a page says 405 to the other one
            name = f"{namespace}:{pattern.name}" if namespace and pattern.name else pattern.name or ""
            yield Route(name, here, pattern.callback.__module__, methods)
