"""Bring the database, the static files and the demo data up to date, in one process, before anything is served."""

import hashlib
import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command, get_commands

from agentcms import environment


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    django.setup()
    for step in (migrate, collect_static_files, seed_demo_data, remove_old_metrics):
        began = time.monotonic()
        if step():
            print(f"{step.__name__.replace('_', ' ').capitalize()}: {time.monotonic() - began:.1f} s", flush=True)


def migrate() -> bool:
    call_command("migrate", interactive=False, verbosity=0)
    return True


def collect_static_files() -> bool:
    """Collect them if any was added, changed or removed since the last time."""
    stamp = Path(settings.DATA_DIR) / "static.stamp"
    current = static_fingerprint()
    if stamp.exists() and stamp.read_text() == current:
        return False
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(current)
    return True


def static_fingerprint() -> str:
    """One value for the names, sizes and times of all static files and the way they are stored."""
    storage = settings.STORAGES["staticfiles"]["BACKEND"]
    facts = [f"{storage} {version('whitenoise')}", *sorted(static_files())]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def static_files() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            path = Path(storage.path(name))
            yield f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}"


def seed_demo_data() -> bool:
    if "seed_demo" not in get_commands() or not environment.read_bool("DEMO_DATA", default=True):
        return False
    call_command("seed_demo")
    call_command("seed_demo_runs")
    return True


def remove_old_metrics() -> bool:
    """Their figures begin anew with this start."""
    from agentcms.observability.metrics import remove_files_of_dead_processes  # it needs the applications

    remove_files_of_dead_processes()
    return False


if __name__ == "__main__":
    main()
