"""The broker, the cache and background jobs."""

from agentcms import environment
from agentcms.schedule import beat_schedule
from agentcms.settings.limits import MAX_DAYS
from agentcms.settings.paths import DATA_DIR

REDIS_URL = environment.read_server_url("REDIS_URL", "redis", "rediss", "unix") or environment.read_address_file(
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

# A worker whose event loop or interpreter does not react for so long is ended, and started again by its supervisor.
WORKER_STALL_TIMEOUT = environment.read_int("WORKER_STALL_TIMEOUT", 60)
JOB_LEASE = environment.read_int("JOB_LEASE", 60, minimum=1)
JOB_TIMEOUT = environment.read_int("JOB_TIMEOUT", 21_600, minimum=60)  # seconds without progress: six hours
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
# The state of a job is in its row.
CELERY_TASK_IGNORE_RESULT = True
# A job survives its worker: its message is acknowledged at the end, and a worker reserves no second one meanwhile.
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Do not retry: an unavailable broker must not delay a web request, and beat sends due jobs again.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 2}
CELERY_TIMEZONE = "UTC"
# Beat of Celery itself says nothing of its health. This one stores a heartbeat, which /readyz checks.
CELERY_BEAT_SCHEDULER = "jobs_app.scheduler:HeartbeatScheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
CELERY_BEAT_SCHEDULE = beat_schedule(NIGHTLY_HOUR, JOB_LEASE)
