"""A process that executes queued runs, as a process of the web server does with RUN_ENGINE=process."""

import os
import signal
import threading
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.durable.settings")
django.setup()

from runs_app.engine import lifecycle  # noqa: E402
from runs_app.engine.engine import EXECUTE_MODULE, get_engine  # noqa: E402


def main() -> None:
    __import__(EXECUTE_MODULE)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    lifecycle.start_web_process()
    print("ready", flush=True)
    while not stopping.is_set():
        get_engine().take_queued()
        time.sleep(0.1)
    lifecycle.shut_down_runs()


if __name__ == "__main__":
    main()
