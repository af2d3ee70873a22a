"""Logs, metrics and traces."""

from typing import Any

from agentcms import environment

LOG_REQUESTS = environment.read_bool("LOG_REQUESTS", default=False)
LOG_LEVEL = environment.read_choice("LOG_LEVEL", "info", "debug", "warning", "error").upper()
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"text": {"()": "agentcms.logs.TextFormatter"}, "json": {"()": "agentcms.logs.JSONFormatter"}},
    "filters": {"faults": {"()": "agentcms.logs.FaultFilter"}, "warning": {"()": "agentcms.logs.WarningFilter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": environment.read_choice("LOG_FORMAT", "text", "json"),
        }
    },
    "root": {
        "handlers": ["stderr"],
        "level": LOG_LEVEL,
    },
    "loggers": {
        "django": {"handlers": [], "level": "INFO"},
        # Celery logs each task twice, and beat sends some every few seconds. Failures are errors.
        **{
            name: {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "WARNING"}
            for name in ("celery.app.trace", "celery.beat", "celery.worker.strategy")
        },
        "django.request": {"level": "ERROR", "filters": ["faults"]},  # no line for each 404
        # Anybody can send a request with another `Host`.
        "django.security.DisallowedHost": {"filters": ["warning"]},
        "httpx": {"level": "WARNING"},
        # The clients of model providers log each request.
        **{name: {"level": "WARNING"} for name in ("httpx2", "openai", "anthropic", "google_genai")},
        # The clients of MCP servers log tracebacks for what servers send. Callers get an error that says it.
        **{name: {"level": "DEBUG" if LOG_LEVEL == "DEBUG" else "CRITICAL"} for name in ("mcp", "client")},
        "django.db.backends": {"level": "INFO"},  # DEBUG would log query parameters, which are user data
    },
}
METRICS_ALLOW = environment.read_networks("METRICS_ALLOW")

# --- Traces

# The OpenTelemetry SDK reads the other standard variables. Without an endpoint it is not imported.
TRACES_ENDPOINT = environment.read_traces_endpoint()
TRACE_CONTENT = environment.read_bool("TRACE_CONTENT", default=False)
# Hosts of model providers and MCP servers that also get the trace context: models.internal, mcp.internal:8080
TRACE_OWN_HOSTS = {host.lower() for host in environment.read_list("TRACE_OWN_HOSTS")}
# The address of a trace in a tool of yours: https://traces.example.org/trace/{trace_id}
TRACE_URL_TEMPLATE = environment.read_url("TRACE_URL_TEMPLATE", "http", "https")
