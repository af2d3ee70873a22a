"""The runner over DBOS: each message is a workflow on a queue in a database, which a worker executes.

DBOS keeps its workflows in the schema `dbos` of the PostgreSQL database, or in a SQLite file beside that of Agent CMS.
A worker that starts again continues the workflows of its host. See https://docs.dbos.dev/python/reference/client.

Imports dbos, an optional dependency. Only `get_runner` imports this module.
"""

from __future__ import annotations

import asyncio
import socket
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from dbos import DBOS, DBOSClient, EnqueueOptions
from django.conf import settings
from django.db import connection

from agentcms.backends.circuit_breaker import CircuitBreaker
from runs_app.engine.engine import get_engine
from runs_app.engine.runners.messages import MessageRunner

DBOS_QUEUE = "runs"
DBOS_WORKFLOW = "perform_run"
# The arguments of the workflow never change, so workers of all releases may execute it.
APPLICATION_VERSION = "1"
QUEUE_INTERVAL = 0.1  # seconds between reads of the queue by a worker
DBOS_PAUSE = 5.0  # seconds without messages after a failure
DELETED_WORKFLOWS = 5000  # in one transaction


class DbosRunner(MessageRunner):
    """A runner that enqueues a workflow of DBOS for each run."""

    service = "The database of DBOS"

    def __init__(self) -> None:
        super().__init__()
        self.circuit = CircuitBreaker(DBOS_PAUSE)
        self.is_launched = False

    @cached_property
    def client(self) -> DBOSClient:
        return DBOSClient(system_database_url=database_url())

    def send_message(self, run_id: UUID) -> None:
        options: EnqueueOptions = {
            "workflow_name": DBOS_WORKFLOW,
            "queue_name": DBOS_QUEUE,
            "app_version": APPLICATION_VERSION,
        }
        self.client.enqueue(options, str(run_id))

    def start_worker(self) -> None:
        """Execute the workflows of the queue in this process."""
        DBOS(
            config={
                "name": "agentcms",
                "system_database_url": database_url(),
                "application_version": APPLICATION_VERSION,
                "executor_id": socket.gethostname(),
                "log_level": "WARNING",
            }
        )
        DBOS.workflow(name=DBOS_WORKFLOW)(perform_workflow)
        DBOS.launch()
        DBOS.register_queue(
            DBOS_QUEUE, worker_concurrency=settings.RUNS_PER_WORKER, polling_interval_sec=QUEUE_INTERVAL
        )
        self.is_launched = True

    def delete_workflows_before(self, limit: datetime) -> None:
        """Delete the workflows that were enqueued before a time. DBOS itself keeps all of them."""
        is_old: dict[str, Any] = {"name": DBOS_WORKFLOW, "queue_name": DBOS_QUEUE, "end_time": limit.isoformat()}
        while old := self.client.list_workflows(
            **is_old, limit=DELETED_WORKFLOWS, load_input=False, load_output=False
        ):
            self.client.delete_workflows([workflow.workflow_id for workflow in old])

    def drain(self) -> None:
        super().drain()
        if self.is_launched:
            DBOS.destroy()
        if "client" in self.__dict__:
            self.client.destroy()


async def perform_workflow(run_id: str) -> None:
    """Execute a run in this process until its segment ends, unless another process has claimed it."""
    await asyncio.wrap_future(get_engine().perform(UUID(run_id)))


def database_url() -> str:
    """Return the address of the database of DBOS: DBOS_DATABASE_URL, or else that of Agent CMS or a file beside it."""
    if settings.DBOS_DATABASE_URL:
        return str(settings.DBOS_DATABASE_URL)
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}-dbos"
    user = quote(database["USER"], safe="")
    password = f":{quote(database['PASSWORD'], safe='')}" if database["PASSWORD"] else ""
    parameters = database["OPTIONS"]
    tls = {name: value for name, value in parameters.items() if name.startswith("ssl")}
    # In the query, because the host may be the folder of a socket. DATABASE_URL may have it there too.
    host, port = (database[name.upper()] or parameters.get(name) for name in ("host", "port"))
    address = urlencode({"host": host or "", "port": port or 5432, **tls})
    return f"postgresql://{user}{password}@/{quote(database['NAME'], safe='')}?{address}"
