"""The Celery application."""

import os
from typing import Any

from celery import Celery, Task
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutting_down
from django.conf import settings

from agentcms.process.stall_watchdog import WorkerWatchdog
from agents_app.editing.change_context import Source, change

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
# Celery ignores the results of these checks, for which each worker would load all views: 23 MB.
os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")

PUBLISH_TIMEOUT = 1.0  # seconds that a web request may wait for a broker that hangs


class CeleryApplication(Celery):
    """A Celery application whose publishers wait less for the broker than its workers do."""

    def connection_for_write(self, url: str | None = None, **options: Any) -> Any:
        timeouts = {"socket_timeout": PUBLISH_TIMEOUT, "socket_connect_timeout": PUBLISH_TIMEOUT}
        # They replace the timeouts of CELERY_BROKER_TRANSPORT_OPTIONS, which are longer, for workers.
        transport_options = {**timeouts, **(options.pop("transport_options", None) or {})}
        options.setdefault("connect_timeout", PUBLISH_TIMEOUT)
        return super().connection_for_write(url, transport_options=transport_options, **options)


class TaskAborted(Exception):
    """The error of a task that tried to end its process."""


class ChangeTask(Task):
    """A task that records `task` as the source of its changes, and cannot end its worker."""

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        is_direct = self.request.called_directly  # not by a worker
        with change(source=Source.TASK):
            try:
                return super().__call__(*args, **kwargs)
            except Exception:
                raise
            except BaseException as error:
                if is_direct:
                    raise
                # With threads, the worker would never acknowledge the task, and take one message less from then on.
                raise TaskAborted(f"The task tried to end its process: {type(error).__name__}.") from error


@setup_logging.connect(weak=False)
def keep_django_logging(**kwargs: Any) -> None:
    """Do nothing: with a receiver of this signal, Celery does not replace Django's logging."""


@worker_init.connect(weak=False)
def reserve_metrics_files(**kwargs: Any) -> None:
    """Allocate the metrics files of the worker before they are used."""
    from agentcms.observability import metrics  # applications load after this module

    metrics.reserve_files()


@worker_ready.connect(weak=False)
def start_watchdog(**kwargs: Any) -> None:
    """End the worker when it no longer reacts, so that it is started again."""
    watchdog = WorkerWatchdog(settings.WORKER_STALL_TIMEOUT)
    watchdog.start()
    worker_shutting_down.connect(lambda **kwargs: watchdog.stop(), weak=False)


app = CeleryApplication("agentcms", task_cls=ChangeTask)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
