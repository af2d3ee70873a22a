"""Processes that index the document of a job, of which all but the last are killed in a request of their embedder.

    python -m tests.knowledge_app.indexing.killed_indexer JOB NOTES KILLS

NOTES is a file to which the embedder appends each text that it has embedded.
"""

import json
import os
import signal
import sys
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.durable.settings")
django.setup()

from django.db import connections  # noqa: E402

from agentcms.vectors import embedders  # noqa: E402
from jobs_app.models import Job  # noqa: E402
from jobs_app.runner import run_claimed  # noqa: E402
from knowledge_app.indexing import handlers  # noqa: E402, F401  registers the handlers of jobs
from tests.knowledge_app.conftest import WordEmbedder  # noqa: E402

BATCHES_BEFORE_KILL = 2


class NotingEmbedder(WordEmbedder):
    """An embedder that notes what it embedded, and may kill its process."""

    def __init__(self, notes, kill_after=None):
        super().__init__()
        self.notes, self.batches_left = notes, kill_after

    def embed(self, texts, kind):
        if self.batches_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.batches_left is not None:
            self.batches_left -= 1
        with self.notes.open("a") as notes:
            notes.writelines(f"{json.dumps(text)}\n" for text in texts)
        return super().embed(texts, kind)


def index(job_id, notes, kill_after=None):
    embedder = NotingEmbedder(notes, kill_after)
    embedders._local[embedder.name] = ("Words", embedder)
    run_claimed(job_id)


def main(job_id, notes, kills):
    for _ in range(kills):
        if (child := os.fork()) == 0:
            index(job_id, notes, BATCHES_BEFORE_KILL)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status))
        Job.objects.filter(pk=job_id).update(lease_until="2020-01-01T00:00Z")  # as if the lease had expired
        connections.close_all()  # before the next fork
    index(job_id, notes)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
