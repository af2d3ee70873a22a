"""The settings of the tests: those of the application with a temporary data folder and fast, unsafe storage."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def data_folder() -> Path:
    """Create a temporary folder per run, with a subfolder for each worker of xdist. The main process deletes it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and "TEST_DATA_DIR" in os.environ:
        folder = Path(os.environ["TEST_DATA_DIR"], worker)
        folder.mkdir(exist_ok=True)
        return folder
    folder = Path(tempfile.mkdtemp(prefix="agentcms-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TEST_DATA_DIR"] = str(folder)
    return folder


# The environment of the machine must not affect the tests, except DATABASE_URL.
INFRASTRUCTURE = ("REDIS_URL", "CELERY_BROKER_URL", "SECRET_KEY", "DEBUG", "HTTPS", "ALLOWED_HOSTS")
for name in (*INFRASTRUCTURE, "AGENT_VERSION_LIMIT", "RUN_DURABLE"):
    os.environ.pop(name, None)
for provider in ("OPENAI", "ANTHROPIC", "GOOGLE", "MISTRAL"):
    os.environ.pop(f"{provider}_API_KEY", None)
    os.environ.pop(f"{provider}_BASE_URL", None)
os.environ["DATA_DIR"] = str(data_folder())

from agentcms.settings import *  # noqa: E402, F403
from agentcms.settings import DATA_DIR, DATABASES, STATIC_ROOT, STORAGES  # noqa: E402

STATIC_ROOT.mkdir(exist_ok=True)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CELERY_BROKER_URL = "memory://"
RUN_ENGINE = "process"  # no worker reads the messages
WORKER_STALL_TIMEOUT = 0  # tests that send the signals of a worker do not end themselves

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, as in the application: in memory, threads would share one connection without locks.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    options = DATABASES["default"]["OPTIONS"]
    options["init_command"] = options["init_command"].replace("synchronous=FULL", "synchronous=OFF")
