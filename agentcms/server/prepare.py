"""Preparation of a start: a check of the settings, migrations, static files and demo data, in one process."""

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.checks import run_checks
from django.core.management import call_command, get_commands
from django.db import Error as DatabaseError
from django.db import OperationalError, connection

from agentcms import environment
from agentcms.first_user import FIRST_USER_COMMAND, NO_USERS_FILE
from agentcms.process.module_loading import loading_modules

WAITING_MESSAGE = "Another process prepares this release. Waiting for its end."


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    with loading_modules():
        django.setup()
    check_settings()
    connect()
    with one_at_a_time():
        for step in (migrate, collect_static_files, seed_demo_data, check_first_user, remove_old_metrics):
            started_at = time.monotonic()
            if step():
                seconds = time.monotonic() - started_at
                print(f"{step.__name__.replace('_', ' ').capitalize()}: {seconds:.1f} s", flush=True)


def check_settings() -> None:
    """Stop with the errors of the settings. Without this, processes would fail later, and far from the cause."""
    errors = [message for message in run_checks(tags=["environment"]) if message.is_serious()]
    if errors:
        raise SystemExit("\n".join(f"{error.msg} {error.hint or ''}".rstrip() for error in errors))


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other process prepares this data folder or this database, and hold others up in the block."""
    with folder_lock(Path(settings.DATA_DIR)), database_lock():
        yield


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a lock of the data folder, with its static files and the database of SQLite."""
    lock = os.open(folder / "prepare.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(WAITING_MESSAGE, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # which releases it, as the end of a process does


@contextmanager
def database_lock() -> Iterator[None]:
    """Hold a lock of the database of PostgreSQL, which several machines may prepare."""
    if connection.vendor != "postgresql":
        yield
        return
    # In a connection of its own, because each migration ends a transaction. Not a lock of the session: a pooler in
    # transaction mode would release it in another one.
    holder = connection.copy()
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
                cursor.execute(f"SET LOCAL {name} = 0")
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended('prepare', 0))")
            if cursor.fetchone() != (True,):
                print(WAITING_MESSAGE, flush=True)
                cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('prepare', 0))")
        yield
    finally:
        with suppress(DatabaseError):  # without a connection the lock is released already
            holder.rollback()  # the pool would warn of a connection in a transaction
        holder.close()


def connect() -> None:
    """Connect to the database, or end with a message that says why not. psycopg logs the reason of each attempt."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        sys.exit(f"The database cannot be reached: {error}. Check DATABASE_URL, and whether the database is running.")


def migrate() -> bool:
    """Apply all migrations."""
    restrict_database_files()
    call_command("migrate", interactive=False, verbosity=0)
    return True


def restrict_database_files() -> None:
    """Let only this user read the files of SQLite. Earlier releases created them with the umask of the caller."""
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        for suffix in ("", "-wal", "-shm", "-queue"):
            # A file of another user stays as it is: only its owner can change its mode.
            with suppress(FileNotFoundError, PermissionError):
                os.chmod(f"{database['NAME']}{suffix}", 0o600)


def collect_static_files() -> bool:
    """Collect the static files if one was added, changed or removed since the last start."""
    fingerprint_file = Path(settings.DATA_DIR) / "static.stamp"
    fingerprint = static_fingerprint()
    if fingerprint_file.exists() and fingerprint_file.read_text() == fingerprint:
        return False
    # Before the collection: one that is interrupted must be repeated.
    fingerprint_file.unlink(missing_ok=True)
    remove_old_static_files(Path(settings.STATIC_ROOT))
    call_command("collectstatic", interactive=False, verbosity=0)
    fingerprint_file.write_text(fingerprint)
    return True


def remove_old_static_files(folder: Path) -> None:
    """Remove collected files, except those that the pages of the present release name.

    Its processes serve until they are restarted, and browsers still show its pages.
    """
    manifest = folder / "staticfiles.json"
    names = {*json.loads(manifest.read_text())["paths"].values(), manifest.name} if manifest.exists() else set()
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix().removesuffix(".gz").removesuffix(".br")
        if path.is_file() and name not in names:
            path.unlink()


def static_fingerprint() -> str:
    """Return a hash of the names, sizes and times of all static files and of their storage."""
    storage = settings.STORAGES["staticfiles"]["BACKEND"]
    lines = [f"{storage} {version('whitenoise')}", *sorted(static_files())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def static_files() -> Iterator[str]:
    """Yield the path, size and modification time of each static file."""
    for finder in get_finders():
        for name, storage in finder.list([]):
            path = Path(storage.path(name))
            yield f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}"


def seed_demo_data() -> bool:
    """Create the demo data unless DEMO_DATA is no."""
    if "seed_demo" not in get_commands() or not environment.read_bool("DEMO_DATA", default=True):
        return False
    call_command("seed_demo")
    call_command("seed_demo_runs")
    call_command("seed_demo_knowledge")
    call_command("seed_demo_evaluations")
    call_command("seed_demo_mcp")
    return True


def check_first_user() -> bool:
    """Say how to create the first user if there is none. The start-up message says it again, after all other lines."""
    marker = Path(settings.DATA_DIR) / NO_USERS_FILE
    if get_user_model().objects.exists():
        marker.unlink(missing_ok=True)
    else:
        marker.touch()
        print(f"There are no users yet. Create the first one: {FIRST_USER_COMMAND}", flush=True)
    return False


def remove_old_metrics() -> bool:
    """Remove the metrics of earlier processes."""
    from agentcms.observability.metrics import remove_files_of_dead_processes  # needs loaded applications

    remove_files_of_dead_processes()
    return False


if __name__ == "__main__":
    main()
