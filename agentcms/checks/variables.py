"""System checks of the values of environment variables.

Values that the settings cannot parse raise ImproperlyConfigured before the checks run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.exceptions import ImproperlyConfigured

from agentcms import environment
from agentcms.checks.production import MIN_SECRET_LENGTH
from agentcms.outbound.addresses import AddressRefused, validate_url
from agentcms.vectors import absence_reason, local_embedders
from runs_app.engine.runners import find_runner_class, missing_methods
from runs_app.providers.allowed_settings import setting_error
from tools_app.programs.commands import command_error

# As browsers send it: in lower case, with punycode, and without the port that the scheme implies.
ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?")
IMPLIED_PORTS = {"http": ":80", "https": ":443"}
ORIGIN_HINT = (
    "Write the scheme and the host name in lower case, and the port unless it is 80 for http or 443 for https: "
    "https://app.example.org"
)

HOST_WITH_PORT = re.compile(r"(?:[^\s/@:]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):[0-9]{1,5}")

# Variables that the server commands read and the settings do not.
SERVER_VARIABLES: dict[str, Callable[[], object]] = {
    "PORT": lambda: environment.read_int("PORT", 8000, minimum=1, maximum=65535),
    "WEB_WORKERS": lambda: environment.read_int("WEB_WORKERS", 2, minimum=1),
    "WEB_THREADS": lambda: environment.read_int("WEB_THREADS", 16, minimum=1),
    "WEB_STOP_TIMEOUT": lambda: environment.read_int("WEB_STOP_TIMEOUT", 30, minimum=1),
    "WORKER_THREADS": lambda: environment.read_int("WORKER_THREADS", 4, minimum=1),
    "DEMO_DATA": lambda: environment.read_bool("DEMO_DATA", default=True),
}


@register("environment")
def check_server_variables(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each invalid variable of the server commands."""
    errors: list[CheckMessage] = []
    for read in SERVER_VARIABLES.values():
        try:
            read()
        except ImproperlyConfigured as error:
            errors.append(Error(str(error), id="agentcms.E001"))
    return errors


@register("environment")
def check_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each host with a scheme or a port: it matches no request, so each gets a 400."""
    return [
        Error(
            f"ALLOWED_HOSTS contains {host!r}, which matches no request.",
            hint="Write the host name only, without scheme, port or path: cms.example.org",
            id="agentcms.E002",
        )
        for host in settings.ALLOWED_HOSTS
        if "/" in host or (":" in host and not host.startswith("["))  # in brackets, an IPv6 address
    ]


@register("environment")
def check_origins(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each text that no browser sends as an origin: it would match no request."""
    refused = [("CORS_ORIGINS", origin) for origin in settings.CORS_ORIGINS if origin != "*" and not is_origin(origin)]
    # Django itself names those without a scheme, and lets *. stand for all names of a host.
    refused += [
        ("CSRF_TRUSTED_ORIGINS", origin)
        for origin in settings.CSRF_TRUSTED_ORIGINS
        if "://" in origin and not is_origin(origin.replace("://*.", "://", 1))
    ]
    return [
        Error(f"{name} contains {origin!r}, which no browser sends.", hint=ORIGIN_HINT, id="agentcms.E004")
        for name, origin in refused
    ]


def is_origin(text: str) -> bool:
    """Return whether a browser may send a text as an origin."""
    return bool(ORIGIN.fullmatch(text)) and not text.endswith(IMPLIED_PORTS[text.partition(":")[0]])


@register("environment")
def check_data_folder(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error if the data folder cannot be created or written to."""
    folder = settings.DATA_DIR
    # The server creates missing folders, so the nearest existing one decides.
    while not folder.exists():
        folder = folder.parent
    if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
        return []
    return [Error(f"DATA_DIR is {settings.DATA_DIR}, which this user cannot write to.", id="agentcms.E003")]


@register("environment")
def check_model_settings(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each setting of models that staff cannot allow."""
    errors: list[CheckMessage] = []
    for text in settings.MODEL_ALLOWED_SETTINGS:
        provider, _, name = text.partition(":")
        message = setting_error(name) if provider and name else "Write it as provider:setting."
        if message:
            errors.append(Error(f"MODEL_ALLOWED_SETTINGS contains {text!r}. {message}", id="agentcms.E009"))
    return errors


@register("environment")
def check_embedder(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error if MEMORY_EMBEDDER names no embedder. Providers may be added while the server runs."""
    name = settings.MEMORY_EMBEDDER
    provider, _, model = name.partition("/")
    if name in local_embedders() or (provider and model and provider != "local"):
        return []
    names = " or ".join(local_embedders())
    way_out = absence_reason(name) or f"Set {names}, or a model of a provider: openai/text-embedding-3-small."
    return [Error(f"MEMORY_EMBEDDER is {name!r}. {way_out}", id="agentcms.E017")]


@register("environment")
def check_model_urls(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each base URL of a model provider that the HTTP client does not accept."""
    errors: list[CheckMessage] = []
    for provider, url in settings.MODEL_URLS.items():
        try:
            if url:
                validate_url(url)
        except AddressRefused as error:
            if error.code != "private_address":  # runs report it; OUTBOUND_NETWORKS may follow
                errors.append(Error(f"{provider.upper()}_BASE_URL: {error.message}", id="agentcms.E005"))
    return errors


@register("environment")
def check_commands(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each command of MCP servers and ACP agents that cannot be read."""
    return [
        Error(f"{name}: the command {key!r} {message}", id=error_id)
        for name, error_id in (("MCP_COMMANDS", "agentcms.E010"), ("ACP_COMMANDS", "agentcms.E016"))
        for key, value in getattr(settings, name).items()
        if (message := command_error(value, has_network=name == "ACP_COMMANDS"))
    ]


@register("environment")
def check_traces(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each setting of traces that cannot work.

    The operator sets the address of the collector, which may be private. It is not reached by redirects.
    """
    errors = [*collector_errors()] if settings.TRACES_ENDPOINT else []
    if settings.TRACE_URL_TEMPLATE and "{trace_id}" not in settings.TRACE_URL_TEMPLATE:
        message = "TRACE_URL_TEMPLATE does not contain {trace_id}."
        hint = "Write the address of a trace: https://traces.example.org/trace/{trace_id}"
        errors.append(Error(message, hint=hint, id="agentcms.E015"))
    return errors


def collector_errors() -> Iterator[CheckMessage]:
    """Yield an error for each setting with which traces cannot be sent to the collector."""
    try:
        validate_url(settings.TRACES_ENDPOINT)
    except AddressRefused as error:
        if error.code != "private_address":
            yield Error(f"OTEL_EXPORTER_OTLP_ENDPOINT: {error.message}", id="agentcms.E014")
    protocol = environment.read_traces_protocol()
    if protocol != environment.TRACES_PROTOCOL:
        message = f"OTEL_EXPORTER_OTLP_PROTOCOL: traces are not exported with '{protocol}'."
        hint = f"Set it to {environment.TRACES_PROTOCOL}, and name the port of the collector for it, often 4318."
        yield Error(message, hint=hint, id="agentcms.E022")
    if reason := provider_error():
        hint = (
            "Read the limits of the variables OTEL_BSP_… and OTEL_SPAN_…: OTEL_BSP_MAX_EXPORT_BATCH_SIZE (512), for "
            "example, must not exceed OTEL_BSP_MAX_QUEUE_SIZE."
        )
        yield Error(f"OpenTelemetry refuses its variables: {reason}", hint=hint, id="agentcms.E018")


def provider_error() -> str:
    """Return why the SDK of OpenTelemetry does not start with its variables, or a blank text."""
    try:
        from agentcms.tracing import tracer_provider

        tracer_provider.get_tracer_provider()
    except ValueError as error:
        return str(error)
    tracer_provider.stop_provider()
    return ""


@register("environment")
def check_engine(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each setting with which the engine of durable runs cannot start."""
    return list(engine_errors())


def runner_error() -> str:
    """Return why RUN_ENGINE selects no runner, or a blank text."""
    try:
        missing = missing_methods(find_runner_class())
    except ImproperlyConfigured as error:
        return str(error)
    return f"RUN_ENGINE={settings.RUN_ENGINE} has no method {missing[0]}." if missing else ""


def engine_errors() -> Iterator[CheckMessage]:
    """Yield an error for each setting of the engine that is missing or invalid."""
    if reason := runner_error():
        yield Error(reason, hint="docs/engines.md describes the engines and their packages.", id="agentcms.E019")
    if settings.RUN_ENGINE == "inngest" and not settings.DEBUG:
        for name in ("INNGEST_EVENT_KEY", "INNGEST_SIGNING_KEY"):
            if not getattr(settings, name):
                yield Error(f"RUN_ENGINE=inngest needs {name}.", hint="docs/inngest.md", id="agentcms.E020")
    if settings.RUN_ENGINE == "temporal" and not HOST_WITH_PORT.fullmatch(settings.TEMPORAL_ADDRESS):
        message = f"TEMPORAL_ADDRESS is {settings.TEMPORAL_ADDRESS!r}, which is not a host with a port."
        hint = "Write it without a scheme: temporal.internal:7233. TEMPORAL_TLS=true encrypts the connection."
        yield Error(message, hint=hint, id="agentcms.E021")


@register("environment")
def check_notices(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each setting without which notices about approvals cannot be sent or trusted."""
    return list(notice_errors())


def notice_errors() -> Iterator[CheckMessage]:
    """Yield an error for each setting of notices that is missing or invalid."""
    if settings.APPROVAL_WEBHOOK_URL and len(settings.APPROVAL_WEBHOOK_SECRET) < MIN_SECRET_LENGTH:
        yield Error(
            f"APPROVAL_WEBHOOK_SECRET needs at least {MIN_SECRET_LENGTH} characters.",
            hint="The receiver checks the signature of each request with it. Set a random text in both places.",
            id="agentcms.E011",
        )
    try:
        if settings.APPROVAL_WEBHOOK_URL:
            validate_url(settings.APPROVAL_WEBHOOK_URL)
    except AddressRefused as error:
        if error.code != "private_address":  # the job reports it; OUTBOUND_NETWORKS may follow
            yield Error(f"APPROVAL_WEBHOOK_URL: {error.message}", id="agentcms.E012")
    if settings.EMAIL_HOST and not settings.PUBLIC_URL:
        yield Error(
            "EMAIL_HOST is set, and PUBLIC_URL is not, so e-mail would have no links.",
            hint="Set the address at which people open this copy: PUBLIC_URL=https://cms.example.org",
            id="agentcms.E013",
        )
