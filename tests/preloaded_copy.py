"""A copy whose processes are forks of one that has loaded the libraries. See `tests.preloaded`."""

import atexit
import os
from functools import cache
from pathlib import Path

from tests.fork_server import Fork, ForkServer
from tests.migrated import run_folder
from tests.preloaded import SPACE
from tests.served import TEST_VARIABLES, WORKER_NUMBER, Served


class PreloadedCopy(Served):
    """A copy that needs half the CPU for its start. The tests in `tests/commands` start it as users do."""

    def start_module(
        self,
        *arguments: str,
        log: Path,
        errors: Path | None = None,
        start_new_session: bool = False,
        **environment: str,
    ) -> Fork:
        own = {**self.environment, **environment}
        return server().fork(own, log, ["-m", *arguments], errors, start_new_session)


@cache
def server() -> ForkServer:
    """Start the process whose forks are the copies of this worker of the tests."""
    environment = {name: value for name, value in os.environ.items() if name not in TEST_VARIABLES}
    folder = run_folder() / f"preloaded-{WORKER_NUMBER}-{os.getpid()}"
    folder.mkdir()
    started = ForkServer(["-m", "tests.preloaded", SPACE], environment, folder)
    atexit.register(started.stop)
    return started
