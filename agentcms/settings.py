"""Django settings, read from environment variables.

The defaults suit one machine: SQLite and an embedded Valkey in a data folder. README.md lists the variables.
"""

import os
import re
from pathlib import Path
from typing import Any

from agentcms import environment
from agentcms.backends.storage import storage_config
from agentcms.db.configuration import database_config
from agentcms.middleware.csp import NONCE, NONE, SELF
from agentcms.schedule import beat_schedule

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(environment.read_text("DATA_DIR", str(BASE_DIR / "var"))).resolve()
# Every process loads the settings before it creates a file: the database, exports and logs are for this user only.
os.umask(0o077)
MAX_DAYS = 36_500  # 100 years: dates before the year 1 are an error, so longer periods cannot be subtracted
MAX_TASK_SECONDS = 24 * 3600  # of a background task

# --- Security

DEBUG = environment.read_bool("DEBUG", default=False)
SECRET_KEY = environment.read_text("SECRET_KEY") or environment.load_or_create_secret(DATA_DIR / "secret_key")
ALLOWED_HOSTS = environment.read_list("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = environment.read_list("CSRF_TRUSTED_ORIGINS")
HTTPS = environment.read_bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]  # Prometheus reads it over plain HTTP from the internal network
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [NONE],
    "script-src": [NONCE],
    "style-src": [SELF, NONCE],
    "font-src": [SELF],
    "img-src": [SELF, "data:"],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}
# The script tags of Django's admin have no nonce.
SECURE_CSP_BELOW = {"/admin/": {"script-src": [SELF, NONCE]}}
SESSION_COOKIE_SAMESITE = "Lax"

# --- Applications

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_htmx",
    "agentcms",
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

MIDDLEWARE = [
    "agentcms.observability.middleware.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "agentcms.middleware.csp.ContentSecurityPolicyMiddleware",
    "access_app.middleware.CorsMiddleware",
    "agents_app.middleware.ChangeContextMiddleware",
    "agentcms.middleware.api_fast_path.ApiFastPathMiddleware",
    # The API fast path skips the middleware below, which only pages need.
    "agentcms.middleware.compression.PageGZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "agentcms.middleware.method_not_allowed.MethodNotAllowedPageMiddleware",
]

ROOT_URLCONF = "agentcms.urls"
WSGI_APPLICATION = "agentcms.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "agentcms.middleware.csp.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs_app.views.approval_list.waiting_approvals",
            ],
        },
    },
]

# --- Database

DATABASE_URL = environment.read_url("DATABASE_URL", "postgres", "postgresql", "sqlite")
DATABASE_POOL_SIZE = environment.read_int("DATABASE_POOL_SIZE", 16, minimum=1)
DATABASE_PREPARE = environment.read_bool("DATABASE_PREPARE", default=True)
DATABASE_LOCK_TIMEOUT = environment.read_int("DATABASE_LOCK_TIMEOUT", 20, minimum=1, maximum=86_400)
DATABASE_STATEMENT_TIMEOUT = environment.read_int("DATABASE_STATEMENT_TIMEOUT", 60, minimum=0, maximum=86_400)
DATABASES = {
    "default": database_config(
        DATABASE_URL,
        DATA_DIR,
        pool_size=DATABASE_POOL_SIZE,
        use_prepared_statements=DATABASE_PREPARE,
        lock_timeout=DATABASE_LOCK_TIMEOUT,
        # Otherwise a process that hangs in a transaction would keep its locks for ever.
        idle_timeout=environment.read_int("DATABASE_IDLE_TIMEOUT", 60, minimum=0, maximum=86_400),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Broker and cache

REDIS_URL = environment.read_url("REDIS_URL", "redis", "rediss", "unix") or environment.read_address_file(
    DATA_DIR / "valkey.url"
)
CACHES = {
    "default": {
        "BACKEND": "agentcms.backends.redis_cache.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},  # a hanging cache must not block requests
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

JOB_LEASE = environment.read_int("JOB_LEASE", 120, minimum=1)
# Unfinished exports and imports of a user, and the size of the user's files and reports.
JOBS_PER_USER = environment.read_int("JOBS_PER_USER", 5, minimum=1)
JOB_FILES_PER_USER = environment.read_int("JOB_FILES_PER_USER_MB", 1000, minimum=1) * 1024 * 1024
JOB_DAYS = environment.read_int("JOB_DAYS", 30, minimum=1, maximum=MAX_DAYS)
NIGHTLY_HOUR = environment.read_int("NIGHTLY_HOUR", 3, maximum=23)
IDEMPOTENCY_DAYS = environment.read_int("IDEMPOTENCY_DAYS", 1, minimum=1, maximum=MAX_DAYS)
ADMIN_LOG_DAYS = environment.read_int("ADMIN_LOG_DAYS", 730, minimum=1, maximum=MAX_DAYS)

# kombu has its own URL scheme for unix sockets.
BROKERS = ("redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps", "pyamqp", "memory")
CELERY_BROKER_URL = environment.read_url("CELERY_BROKER_URL", *BROKERS) or REDIS_URL.replace(
    "unix://", "redis+socket://"
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Do not retry: an unavailable broker must not delay a web request, and beat sends due jobs again.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 2}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "jobs_app.scheduler:HeartbeatScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
CELERY_BEAT_SCHEDULE = beat_schedule(NIGHTLY_HOUR, JOB_LEASE)

# --- Sign-in

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SESSION_ENGINE = "access_app.sessions"
# Browsers limit cookies to 400 days.
SESSION_COOKIE_AGE = environment.read_int("SESSION_DAYS", 14, minimum=1, maximum=400) * 86_400
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "agents:list"
LOGOUT_REDIRECT_URL = "login"

# --- Language, time, files

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGE_URL = environment.read_url("STORAGE_URL", "s3")
STORAGES = {
    "default": storage_config(STORAGE_URL, DATA_DIR, "files"),
    "exchange": storage_config(STORAGE_URL, DATA_DIR, "exchange"),
    "staticfiles": {"BACKEND": "agentcms.web.static_files.StaticFilesStorage"},
}
# Names with a hash, of Django or of the bundled editor (chunk-1A2B3C4D.js), never get another content.
WHITENOISE_IMMUTABLE_FILE_TEST = r"(\.[0-9a-f]{12}|-[0-9A-Z]{8})\.\w+$"
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "tmp"  # beside local files, so that a finished file is moved and not copied
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_718_592  # 4.5 MB
FILE_UPLOAD_HANDLERS: list[str] = []  # only views with `accepts_upload` receive files

# --- Web server

WEB_THREADS = environment.read_int("WEB_THREADS", 16, minimum=1)
# A body must arrive within this many seconds, plus one for each REQUEST_BODY_MIN_RATE bytes.
REQUEST_BODY_TIMEOUT = environment.read_int("REQUEST_BODY_TIMEOUT", 10, minimum=1)
REQUEST_BODY_MIN_RATE = environment.read_int("REQUEST_BODY_MIN_RATE", 4096, minimum=1)
# A web process that does not react for this many seconds is replaced. 0 switches this off.
WEB_STALL_TIMEOUT = environment.read_int("WEB_STALL_TIMEOUT", 20)

# --- Logs and metrics

LOG_REQUESTS = environment.read_bool("LOG_REQUESTS", default=False)
LOG_LEVEL = environment.read_choice("LOG_LEVEL", "info", "debug", "warning", "error").upper()
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"text": {"()": "agentcms.logs.TextFormatter"}, "json": {"()": "agentcms.logs.JSONFormatter"}},
    "filters": {"faults": {"()": "agentcms.logs.FaultFilter"}},
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

# --- API

TRUSTED_PROXIES = environment.read_networks("TRUSTED_PROXIES")
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "access_app.authentication.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["agentcms.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["agentcms.api.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "agentcms.api.renderers.Negotiation",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_THROTTLE_CLASSES": ["access_app.throttling.api.CallThrottle"],
    "EXCEPTION_HANDLER": "agentcms.api.exceptions.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
}

# API_THROTTLE limits the calls of an API key, or of an address without one. API_WRONG_KEYS limits the wrong keys of an
# address.
API_THROTTLE = environment.read_rate("API_THROTTLE", "5000/s")
API_WRONG_KEYS = environment.read_rate("API_WRONG_KEYS", "60/min")
IMPORT_MAX_BYTES = environment.read_int("IMPORT_MAX_MB", 200, minimum=1) * 1024 * 1024
# Only these URLs receive a body above DATA_UPLOAD_MAX_MEMORY_SIZE. A form adds its other fields to the file.
UPLOAD_PATHS = re.compile(
    r"/api/stored/agent-import|/exchange/import|/api/knowledge/[^/]+/documents|/knowledge/[^/]+/upload"
)
UPLOAD_MAX_BYTES = IMPORT_MAX_BYTES + DATA_UPLOAD_MAX_MEMORY_SIZE
CORS_ORIGINS = environment.read_list("CORS_ORIGINS")

# --- Notices

# The address of this copy, for links in e-mail and webhooks.
PUBLIC_URL = environment.read_url("PUBLIC_URL", "http", "https").rstrip("/")
# Without a host no e-mail is sent.
EMAIL_HOST = environment.read_text("EMAIL_HOST")
EMAIL_PORT = environment.read_int("EMAIL_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = environment.read_text("EMAIL_USER")
EMAIL_HOST_PASSWORD = environment.read_text("EMAIL_PASSWORD")
EMAIL_SECURITY = environment.read_choice("EMAIL_SECURITY", "starttls", "tls", "none")
EMAIL_USE_TLS, EMAIL_USE_SSL = EMAIL_SECURITY == "starttls", EMAIL_SECURITY == "tls"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = environment.read_text("EMAIL_FROM", "agentcms@localhost")
# Receives a signed request for each call that waits for people, and for each decision.
APPROVAL_WEBHOOK_URL = environment.read_url("APPROVAL_WEBHOOK_URL", "http", "https")
APPROVAL_WEBHOOK_SECRET = environment.read_text("APPROVAL_WEBHOOK_SECRET")

# --- Agents

AGENT_VERSION_LIMIT = environment.read_int("AGENT_VERSION_LIMIT", 50, minimum=5)
AGENT_VERSION_DAYS = environment.read_int("AGENT_VERSION_DAYS", 0, maximum=MAX_DAYS)
TRASH_DAYS = environment.read_int("TRASH_DAYS", 30, minimum=1, maximum=MAX_DAYS)
ACTIVATION_DAYS = environment.read_int("ACTIVATION_DAYS", 730, minimum=1, maximum=MAX_DAYS)

# --- Runs

# A durable run continues in another process when its own stops. Agents and calls may decide otherwise.
RUN_DURABLE = environment.read_bool("RUN_DURABLE", default=True)
# Where durable runs are executed: in the processes of the web server (process), or in workers, which the broker
# (celery), DBOS or Temporal wakes, or in web processes that Inngest calls. Or the path of a runner of your own.
RUN_ENGINE = environment.read_choice_or_path("RUN_ENGINE", "celery", "process", "dbos", "temporal", "inngest")
DBOS_DATABASE_URL = environment.read_url("DBOS_DATABASE_URL", "postgresql", "sqlite")
INNGEST_EVENT_KEY = environment.read_text("INNGEST_EVENT_KEY")
INNGEST_SIGNING_KEY = environment.read_text("INNGEST_SIGNING_KEY")
INNGEST_BASE_URL = environment.read_url("INNGEST_BASE_URL", "http", "https")
TEMPORAL_ADDRESS = environment.read_text("TEMPORAL_ADDRESS", "localhost:7233")
TEMPORAL_NAMESPACE = environment.read_text("TEMPORAL_NAMESPACE", "default")
RUNS_PER_WORKER = environment.read_int("RUNS_PER_WORKER", 64, minimum=1)
APPROVAL_DAYS = environment.read_int("APPROVAL_DAYS", 7, minimum=1, maximum=MAX_DAYS)
APPROVAL_LOG_DAYS = environment.read_int("APPROVAL_LOG_DAYS", 730, minimum=1, maximum=MAX_DAYS)
RUNS_SUSPENDED_PER_USER = environment.read_int("RUNS_SUSPENDED_PER_USER", 1000, minimum=1)
RUN_STEP_DAYS = environment.read_int("RUN_STEP_DAYS", 1, minimum=1, maximum=MAX_DAYS)
RUN_TIMEOUT = environment.read_int("RUN_TIMEOUT", 300, minimum=1)
RUN_MAX_STEPS = environment.read_int("RUN_MAX_STEPS", 20, minimum=1)
RUN_MAX_TOKENS = environment.read_int("RUN_MAX_TOKENS", 200_000, minimum=1)
RUN_MAX_INPUT = environment.read_int("RUN_MAX_INPUT_KB", 512, minimum=1) * 1024
RUN_TOOL_TIMEOUT = environment.read_int("RUN_TOOL_TIMEOUT", 60, minimum=1)
EXPERIMENT_RUNS = environment.read_int("EXPERIMENT_RUNS", 20, minimum=1)
EXPERIMENTS_PER_USER = environment.read_int("EXPERIMENTS_PER_USER", 50, minimum=1)  # that have not ended
# Experiments that a worker runs at once, each in a thread. It has four, which other jobs need too.
EXPERIMENTS_PER_WORKER = environment.read_int("EXPERIMENTS_PER_WORKER", 2, minimum=1)
# Tool calls in the background: how many run at once, and how many of one agent. More wait. Times are in seconds.
BACKGROUND_TASKS = environment.read_int("BACKGROUND_TASKS", 10, minimum=1)
BACKGROUND_TASKS_PER_AGENT = environment.read_int("BACKGROUND_TASKS_PER_AGENT", 5, minimum=1)
BACKGROUND_TASK_TIMEOUT = environment.read_int("BACKGROUND_TASK_TIMEOUT", 300, minimum=1, maximum=MAX_TASK_SECONDS)
BACKGROUND_TASK_MAX_TIMEOUT = environment.read_int(
    "BACKGROUND_TASK_MAX_TIMEOUT", 3600, minimum=1, maximum=MAX_TASK_SECONDS
)
BACKGROUND_TASK_MAX_RETRIES = environment.read_int("BACKGROUND_TASK_MAX_RETRIES", 5, minimum=0, maximum=100)
RUNS_PER_USER = environment.read_int("RUNS_PER_USER", 20, minimum=1)
RUNS_PER_AGENT = environment.read_int("RUNS_PER_AGENT", 50, minimum=1)
SIGNALS_UNSEEN = environment.read_int("SIGNALS_UNSEEN", 100, minimum=1)  # of a thread
# Open streams of a web process. Each uses one thread, in addition to WEB_THREADS.
RUN_STREAMS = environment.read_int("RUN_STREAMS", 48, minimum=1)
RUN_STREAMS_PER_USER = environment.read_int("RUN_STREAMS_PER_USER", 20, minimum=1)
# Seconds after which the connection of a client that reads nothing of a stream is closed.
STREAM_STALL_TIMEOUT = environment.read_int("STREAM_STALL_TIMEOUT", 60, minimum=1, maximum=3600)
RUN_DAYS = environment.read_int("RUN_DAYS", 30, minimum=1, maximum=MAX_DAYS)
MEMORY_EMBEDDER = environment.read_text("MEMORY_EMBEDDER", "local/multilingual")
RECALL_MOST = environment.read_int("RECALL_MOST", 20_000, minimum=100, maximum=1_000_000)
# The largest working memory of a resource or a thread.
WORKING_MEMORY_MAX_KB = environment.read_int("WORKING_MEMORY_MAX_KB", 32, minimum=1, maximum=1024)
# Seconds for which a model may make an observation or a reflection.
OBSERVER_TIMEOUT = environment.read_int("OBSERVER_TIMEOUT", 60, minimum=1, maximum=3600)
THREAD_DAYS = environment.read_int("THREAD_DAYS", 365, minimum=1, maximum=MAX_DAYS)
# API keys of the built-in model providers, and base URLs that replace their defaults.
MODEL_KEYS = {
    "openai": environment.read_text("OPENAI_API_KEY"),
    "anthropic": environment.read_text("ANTHROPIC_API_KEY"),
    "google": environment.read_text("GOOGLE_API_KEY"),
    "mistral": environment.read_text("MISTRAL_API_KEY"),
}
MODEL_URLS = {
    "openai": environment.read_url("OPENAI_BASE_URL", "http", "https"),
    "anthropic": environment.read_url("ANTHROPIC_BASE_URL", "http", "https"),
    "google": environment.read_url("GOOGLE_BASE_URL", "http", "https"),
    "mistral": environment.read_url("MISTRAL_BASE_URL", "http", "https"),
}
# Settings of models that editors may use in addition to those of the dialect, as provider:setting.
MODEL_ALLOWED_SETTINGS = environment.read_list("MODEL_ALLOWED_SETTINGS")
# The largest answer of a model provider to one request, in bytes.
MODEL_MAX_ANSWER = environment.read_int("MODEL_MAX_ANSWER_MB", 16, minimum=1, maximum=1024) * 1024 * 1024
# A JSON file with the programs that MCP servers may be: {"key": {"argv": [...], "env": ["NAME"], "sandbox": "bwrap"}}.
MCP_COMMANDS = environment.read_json_file("MCP_COMMANDS")
MCP_SERVERS_PER_TEAM = environment.read_int("MCP_SERVERS_PER_TEAM", 50, minimum=1)
# The knowledge bases of a team. Of all of them: the number of documents and the size of their content, and the vectors
# that callers send.
KNOWLEDGE_BASES_PER_TEAM = environment.read_int("KNOWLEDGE_BASES_PER_TEAM", 100, minimum=1)
KNOWLEDGE_DOCUMENTS_PER_TEAM = environment.read_int("KNOWLEDGE_DOCUMENTS_PER_TEAM", 10_000, minimum=1)
KNOWLEDGE_BYTES_PER_TEAM = environment.read_int("KNOWLEDGE_MB_PER_TEAM", 2000, minimum=1) * 1024 * 1024
KNOWLEDGE_VECTORS_PER_TEAM = environment.read_int("KNOWLEDGE_VECTORS_PER_TEAM", 200_000, minimum=1)
# The largest document of a knowledge base, and what may be read of a PDF: its pages, and the seconds that this takes.
KNOWLEDGE_MAX_DOCUMENT_BYTES = environment.read_int("KNOWLEDGE_MAX_DOCUMENT_MB", 10, minimum=1) * 1024 * 1024
KNOWLEDGE_MAX_PAGES = environment.read_int("KNOWLEDGE_MAX_PAGES", 2000, minimum=1)
KNOWLEDGE_EXTRACTION_TIMEOUT = environment.read_int("KNOWLEDGE_EXTRACTION_TIMEOUT", 60, minimum=1)
# Jobs that index documents, of those that a worker runs at once. They need much CPU.
KNOWLEDGE_JOBS_PER_WORKER = environment.read_int("KNOWLEDGE_JOBS_PER_WORKER", 1, minimum=1)
# A JSON file with the programs that ACP agents may be, in the same form, with "network": "none" or "proxy".
ACP_COMMANDS = environment.read_json_file("ACP_COMMANDS")
# The sandbox of the programs of ACP_COMMANDS that name none.
ACP_SANDBOX = environment.read_choice("ACP_SANDBOX", "bwrap", "none")
# The folders in which ACP agents work.
WORKSPACES_DIR = Path(environment.read_text("WORKSPACES_DIR", str(DATA_DIR / "workspaces"))).resolve()
# Connections to private addresses are refused unless their network is listed here. MODEL_NETWORKS is the earlier name.
OUTBOUND_NETWORKS = environment.read_networks("OUTBOUND_NETWORKS") + environment.read_networks("MODEL_NETWORKS")
# Encrypts the stored API keys of model providers. Changing it makes them unreadable.
PROVIDER_KEY_SECRET = environment.read_text("PROVIDER_KEY_SECRET") or SECRET_KEY
