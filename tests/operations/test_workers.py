"""Real workers on a real broker: no job is done twice, none is lost, and no edit waits for them."""

import json
import signal
import time

import pytest

from tests.operations.real import another_worker, assert_sound, jobs, rows, run_inside, wait_for_jobs
from tests.served import Served, serving, wait_until

AGENTS, VERSIONS, LIMIT = 6000, 7, 5
RECORDS = 1500


@pytest.fixture
def copy(tmp_path):
    """A copy whose workers count as dead after two seconds of silence."""
    with serving(tmp_path / "var", JOB_LEASE="2", AGENT_VERSION_LIMIT=str(LIMIT)) as copy:
        yield copy


def an_agent(copy: Served, agent_id: str = "porter") -> str:
    copy.create_user("ann", "--superuser")
    key = copy.create_api_key("ann")
    body = {"id": agent_id, "name": "Porter", "instructions": "", "model": {"provider": "demo", "name": "echo"}}
    with copy.client(key) as client:
        assert client.post("/api/stored/agents", json=body).status_code == 201
    return key


def test_two_workers_never_do_one_job_twice(copy):
    with another_worker(copy):
        run_inside(
            copy,
            """
from jobs_app import work
from jobs_app.models import Job
jobs = [Job.objects.create(kind="prune_versions", parameters={"dryRun": True}) for _ in range(40)]
for _ in range(4):
    for job in jobs:
        work.send(job)
""",
        )
        found = wait_for_jobs(copy, "prune_versions", 40)

    assert {(state, attempts) for state, attempts, *_ in found} == {("done", 1)}


def test_a_worker_killed_in_the_middle_of_a_prune_loses_nothing(copy):
    run_inside(copy, f"from benchmarks.filling import fill; fill({AGENTS}, {VERSIONS})")
    worker = copy.named("agentcms.worker")[0]
    worker.suspend()  # or the sweep may be over before we look
    run_inside(copy, "from jobs_app import work; work.start('prune_versions')")
    worker.resume()

    wait_until(lambda: any(done > 0 for _, _, done, *_ in jobs(copy, "prune_versions")), 60, "the sweep's first batch")
    worker.kill()

    [(state, attempts, done, result, _)] = wait_for_jobs(copy, "prune_versions", seconds=90)
    assert (state, done) == ("done", AGENTS)
    assert attempts > 1, "the sweep was over before the worker was killed"
    assert result["removed"] == AGENTS * (VERSIONS - LIMIT)
    left = rows(copy, "SELECT version_number, count(*) FROM versions_app_agentversion GROUP BY version_number")
    assert dict(left) == dict.fromkeys(range(3, VERSIONS + 1), AGENTS)
    assert_sound(copy)


def test_a_broker_that_hangs_delays_a_job_and_breaks_no_edit(copy):
    key = an_agent(copy)
    valkey = copy.named("valkey-server")[0]

    valkey.send_signal(signal.SIGSTOP)
    try:
        with copy.client(key) as client:
            began = time.monotonic()
            answers = [client.patch("/api/stored/agents/porter", json={"instructions": f"Edit {n}"}) for n in range(3)]
            seconds = time.monotonic() - began
            run_inside(copy, "from jobs_app import work; work.start('clean_up')")
    finally:
        valkey.send_signal(signal.SIGCONT)

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert seconds < 15
    assert wait_for_jobs(copy, "clean_up")[0][0] == "done"


def test_a_broker_that_is_killed_comes_back_with_its_jobs(copy):
    key = an_agent(copy)

    copy.named("valkey-server")[0].kill()
    with copy.client(key) as client:
        answer = client.patch("/api/stored/agents/porter", json={"instructions": "While it was away."})
    wait_until(lambda: copy.named("valkey-server"), what="another valkey")
    run_inside(copy, "from jobs_app import work; work.start('clean_up')")

    assert answer.status_code == 200
    assert wait_for_jobs(copy, "clean_up")[0][0] == "done"
    assert json.loads(rows(copy, "SELECT snapshot FROM versions_app_agentversion WHERE version_number = 2")[0][0])


def test_a_worker_killed_in_the_middle_of_an_import_takes_every_record_in_once(copy):
    copy.create_user("ann", "--superuser")
    model = {"provider": "demo", "name": "echo"}
    agent = {"name": "Taken in", "instructions": "", "model": model}
    records = [json.dumps({"id": f"in-{number:04d}", "ownerId": "", "agent": agent}) for number in range(RECORDS)]
    with copy.client(copy.create_api_key("ann")) as client:
        headers = {"content-type": "application/x-ndjson"}
        answer = client.post("/api/stored/agent-import", content="\n".join(records), headers=headers)
    assert answer.status_code == 202, answer.text

    wait_until(lambda: any(done > 0 for _, _, done, *_ in jobs(copy, "import_agents")), 60, "the first records")
    copy.named("agentcms.worker")[0].kill()

    [(state, attempts, done, result, _)] = wait_for_jobs(copy, "import_agents", seconds=120)
    assert (state, done) == ("done", RECORDS)
    assert attempts > 1, "the import was over before the worker was killed"
    assert (result["create"], result["same"], result["refuse"]) == (RECORDS, 0, 0)
    assert [each["line"] for each in result["records"]] == list(range(1, RECORDS + 1))
    versions = rows(copy, "SELECT count(*), count(DISTINCT agent_id) FROM versions_app_agentversion")
    assert versions == [(RECORDS, RECORDS)]
    assert_sound(copy)
