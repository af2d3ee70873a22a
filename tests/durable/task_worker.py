"""Workers of durable runs and background tasks that may be killed: this process forks the next one at once.

A fork takes milliseconds, and a new process seconds. The workers themselves are ordinary: they claim runs and jobs
from the database, and repeat every moment what beat starts every few seconds.
"""

import os
import signal
import sys
import time

import django

from agentcms.process.module_loading import loading_modules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.durable.settings")
with loading_modules():
    django.setup()

import evals_app.tasks  # noqa: F401  registers the handler of experiments
import runs_app.tasks  # noqa: F401  registers the handlers of jobs
from jobs_app import runner
from jobs_app.models import Job
from runs_app.background.maintenance import maintain_tasks
from runs_app.engine import lifecycle, reaper
from runs_app.engine.engine import EXECUTE_MODULE, get_engine
from tests import fork_server
from tests.durable import kill_points

LOOK_INTERVAL = 0.1  # seconds


def main() -> None:
    with loading_modules():
        __import__(EXECUTE_MODULE)
    kill_points.install()
    if fork_server.OPTION in sys.argv:
        fork_server.wait_for_fork()
    children: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stop(children))
    print("ready", flush=True)
    while True:
        if (child := os.fork()) == 0:
            work()
        children[:] = [child]
        os.waitpid(child, 0)


def stop(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    os._exit(0)


def work() -> None:
    """Execute runs and jobs until this process is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    reaper.INTERVAL = LOOK_INTERVAL
    lifecycle.start_web_process()
    while os.getppid() != 1:
        get_engine().take_queued()
        for job_id in Job.objects.due().values_list("pk", flat=True):
            runner.run_claimed(str(job_id))
        maintain_tasks()
        time.sleep(LOOK_INTERVAL)
    sys.exit()


if __name__ == "__main__":
    main()
