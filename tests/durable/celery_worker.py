"""The Celery worker of the application, for durable runs. With --fork-server, its forks are workers."""

import os
import sys

import django

from agentcms.process.module_loading import loading_modules

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.durable.settings")
with loading_modules():
    django.setup()

    from agentcms.celery import app
    from agentcms.server import worker
    from runs_app.engine.engine import EXECUTE_MODULE
    from tests import fork_server

OPTIONS = ["--queues", "runs", "--threads", "2", "--without-beat"]


def main() -> int:
    if fork_server.OPTION in sys.argv:
        with loading_modules():
            app.loader.import_default_modules()
            __import__(EXECUTE_MODULE)
        fork_server.wait_for_fork()
    return worker.main(OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
