"""Killing the process that indexes a document: the next one continues, and no text is embedded twice."""

import json
import os
import subprocess
import sys

import pytest
from django.db import connection

from agentcms.server.processes import PROJECT
from knowledge_app.documents.adding import add_text
from knowledge_app.models import Chunk, Document
from tests.conftest import DRILL
from tests.knowledge_app.conftest import make_base, run_jobs
from tests.knowledge_app.indexing.test_indexing import chunk_rows, long_text
from tests.served import TEST_VARIABLES

pytestmark = pytest.mark.django_db(transaction=True)

CHAPTERS, KILLS = (2000, 4) if DRILL else (200, 2)  # a job has five attempts
SIZES = {"chunk_size": 200, "chunk_overlap": 0}


def index_with_kills(job_id, notes, folder):
    inherited = {name: value for name, value in os.environ.items() if name not in TEST_VARIABLES}
    database = {name: os.environ[name] for name in ("DATABASE_URL",) if name in os.environ}
    own = {
        "DJANGO_SETTINGS_MODULE": "tests.durable.settings",
        "DURABLE_DATABASE": str(connection.settings_dict["NAME"]),
        "DURABLE_FOLDER": str(folder),
        "DATA_DIR": str(folder),
        "RUN_ENGINE": "process",
        "REDIS_URL": "",
    }
    command = [
        sys.executable,
        "-m",
        "tests.knowledge_app.indexing.killed_indexer",
        str(job_id),
        str(notes),
        str(KILLS),
    ]
    done = subprocess.run(
        command, env={**inherited, **database, **own}, cwd=PROJECT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(line) for line in done.stdout.split()]


def test_killed_workers_leave_the_same_chunks_and_embed_no_text_twice(tmp_path):
    base, notes = make_base(**SIZES), tmp_path / "notes"
    document = add_text(base, "Install", long_text(CHAPTERS))

    ends = index_with_kills(document.job_id, notes, tmp_path)

    texts = [json.loads(line) for line in notes.read_text().splitlines()]
    assert ends == [-9] * KILLS
    assert Document.objects.get().status == "ready"
    assert len(texts) == len({*texts}) == Chunk.objects.count()
    killed = chunk_rows()
    base.delete()
    add_text(make_base("other", **SIZES), "Install", long_text(CHAPTERS))
    run_jobs()
    assert killed == chunk_rows()
