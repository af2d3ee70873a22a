"""What `manage.py check` says about the environment. A value that nothing can be made of stops the start itself."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from agentcms import environment

is_origin = re.compile(r"https?://[^/\s]+").fullmatch

# Read by the commands that serve, and not by the settings.
SERVER_VARIABLES: dict[str, Callable[[], Any]] = {
    "PORT": lambda: environment.read_int("PORT", 8000, minimum=1, maximum=65535),
    "WEB_WORKERS": lambda: environment.read_int("WEB_WORKERS", 2, minimum=1),
    "WEB_THREADS": lambda: environment.read_int("WEB_THREADS", 16, minimum=1),
    "WORKER_THREADS": lambda: environment.read_int("WORKER_THREADS", 4, minimum=1),
    "DEMO_DATA": lambda: environment.read_bool("DEMO_DATA", default=True),
}


@register("environment")
def check_server_variables(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """The variables of the command that serves."""
    found: list[CheckMessage] = []
    for read in SERVER_VARIABLES.values():
        try:
            read()
        except ImproperlyConfigured as error:
            found.append(Error(str(error), id="agentcms.E001"))
    return found


@register("environment")
def check_hosts(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """A host with a scheme or a port in it never matches, and every request is a 400."""
    return [
        Error(
            f"ALLOWED_HOSTS names {host!r}, which matches no request.",
            hint="Write the name alone, without scheme, port or path: cms.example.org",
            id="agentcms.E002",
        )
        for host in settings.ALLOWED_HOSTS
        if "/" in host or (":" in host and not host.startswith("["))
    ]


@register("environment")
def check_origins(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Browsers send an origin with its scheme and without a path: any other text never matches."""
    return [
        Error(
            f"CORS_ORIGINS names {origin!r}, which is the origin of no page.",
            hint="Write scheme and name, and a port where there is one: https://app.example.org",
            id="agentcms.E004",
        )
        for origin in settings.CORS_ORIGINS
        if origin != "*" and not is_origin(origin)
    ]


@register("environment")
def check_data_folder(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    folder = settings.DATA_DIR
    while not folder.exists():
        folder = folder.parent
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return []
    return [Error(f"DATA_DIR is {settings.DATA_DIR}, which this user cannot write to.", id="agentcms.E003")]


@register(Tags.database, deploy=True)
def check_deployment(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    return list(deployment_warnings())


def deployment_warnings() -> Iterator[CheckMessage]:
    threads = environment.read_int("WEB_THREADS", 16, minimum=1)
    if settings.DATABASE_URL and threads > settings.DATABASE_POOL_SIZE:
        yield Warning(
            f"DATABASE_POOL_SIZE is {settings.DATABASE_POOL_SIZE} for {threads} WEB_THREADS: requests wait in line.",
            id="agentcms.W001",
        )
    if str(settings.CACHES["default"]["BACKEND"]).endswith("LocMemCache"):
        yield Warning(
            "There is no REDIS_URL: each process counts throttles for itself, and there is no broker for jobs.",
            id="agentcms.W002",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield Warning("ALLOWED_HOSTS answers to any name.", hint="Name your own hosts.", id="agentcms.W003")
