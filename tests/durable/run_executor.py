"""A process that executes durable runs, without Celery. With --fork-server, its forks execute them.

With RUN_ENGINE=process it takes queued runs, as a process of the web server does. With another engine it is a worker.
"""

import os
import signal
import sys
import threading
import time

import django
from django.conf import settings

from agentcms.process.module_loading import loading_modules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.durable.settings")
with loading_modules():
    django.setup()

from runs_app.engine import lifecycle
from runs_app.engine.engine import EXECUTE_MODULE, get_engine
from tests import fork_server


def main() -> None:
    with loading_modules():
        __import__(EXECUTE_MODULE)
    if fork_server.OPTION in sys.argv:
        fork_server.wait_for_fork()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    takes_queued = settings.RUN_ENGINE == "process"
    if takes_queued:
        lifecycle.start_web_process()
    else:
        lifecycle.start_worker({"runs"})
    print("ready", flush=True)
    while not stopping.is_set():
        if takes_queued:
            get_engine().take_queued()
        time.sleep(0.1)
    lifecycle.shut_down_runs()


if __name__ == "__main__":
    main()
