"""Failures of processes under load, and recovery from them."""

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from agentcms.server.supervisor import MAX_RESTART_DELAY
from jobs_app.scheduler import ScheduleFile
from tests.operations.running_copy import (
    NO_LIMIT,
    ConcurrentEditors,
    assert_consistent,
    delete_agents_and_jobs,
    execute,
    is_ready,
    ready,
    rows,
    run_inside,
    suspended,
    wait_for_jobs,
)
from tests.served import Served, wait_until
from tests.served_accounts import serving_with_accounts


@pytest.fixture(scope="module")
def shared_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_with_accounts(tmp_path_factory.mktemp("drills") / "var", AGENT_VERSION_LIMIT=NO_LIMIT) as copy:
        yield copy


@pytest.fixture
def copy(shared_copy: Served) -> Served:
    """Return a ready copy without jobs, started again if the test before has stopped it."""
    if not shared_copy.processes():
        shared_copy.start()
    wait_until(lambda: is_ready(shared_copy), 60, f"readiness; {ready(shared_copy)}")
    delete_agents_and_jobs(shared_copy)
    return shared_copy


def web_processes(copy):
    return copy.processes_matching("agentcms.server.web")


# Before the other tests: each end of a process lengthens the pause before the next start.
def test_the_web_server_answers_soon_after_all_its_processes_were_killed(copy, is_drill):
    for process in web_processes(copy):
        process.kill()
    killed_at = time.monotonic()

    wait_until(lambda: answers(copy), 3 if is_drill else 60, "an answer")

    print(f"Answered after {time.monotonic() - killed_at:.1f} s")
    assert httpx.get(f"{copy.base_url}/healthz", timeout=30).status_code == 200


def answers(copy):
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{copy.base_url}/healthz", timeout=1).status_code == 200
    return False


def test_killing_valkey_fails_no_edit(copy, is_drill):
    with ConcurrentEditors(copy) as editors:
        for _ in range(20 if is_drill else 2):
            copy.processes_matching("valkey-server")[0].kill()
            editors.wait_for_more(20)
            wait_until(lambda: copy.processes_matching("valkey-server"), MAX_RESTART_DELAY * 2, what="another valkey")

    wait_until(lambda: is_ready(copy), 60, f"readiness; {ready(copy)}")
    assert editors.refused == []
    editors.assert_nothing_lost()
    assert_consistent(copy)


def test_killing_web_processes_loses_no_acknowledged_edit(copy, is_drill):
    with ConcurrentEditors(copy) as editors:
        # test_crash_recovery kills a hundred times. Here each kill lengthens the pause before the next start.
        for _ in range(12 if is_drill else 3):
            wait_until(lambda: len(web_processes(copy)) > 1, MAX_RESTART_DELAY * 2, "a web process")
            max(web_processes(copy), key=lambda process: process.create_time()).kill()
            editors.wait_for_more(8)

    editors.assert_nothing_lost()
    assert_consistent(copy)


def test_stopping_the_scheduler_for_an_hour_loses_no_job(copy):
    copy.stop()
    run_inside(copy, "create_missed_jobs()")
    set_schedule_back(copy.data_dir / "beat-schedule", timedelta(hours=1))

    copy.start()

    assert ("done", 1) in [job[:2] for job in wait_for_jobs(copy, "clean_up")]
    assert ("done", 2) in [job[:2] for job in wait_for_jobs(copy, "check_history")]
    wait_until(lambda: is_ready(copy), 60, f"readiness; {ready(copy)}")


def test_a_night_without_the_scheduler_is_caught_up(copy):
    copy.stop()
    set_schedule_back(copy.data_dir / "beat-schedule", timedelta(days=1))

    copy.start()

    for kind in ("prune_versions", "check_history", "clean_up"):
        assert wait_for_jobs(copy, kind)[0][0] == "done"


def set_schedule_back(schedule: Path, time: timedelta) -> None:
    """Set the last runs of the schedule back by this time."""
    stored = ScheduleFile(schedule)
    for entry in stored["entries"].values():
        entry.last_run_at -= time
    stored.sync()


def test_readiness_reports_a_stopped_worker_and_scheduler(copy):
    with suspended(copy, "agentcms.server.worker"):
        long_ago = "now() - interval '1 hour'" if copy.environment.get("DATABASE_URL") else "'2020-01-01 00:00:00'"
        execute(copy, f"UPDATE jobs_app_heartbeat SET at = {long_ago}")
        wait_until(lambda: ready(copy).get("beat", "").startswith("last seen"), 60, "that beat is missed")

    wait_until(lambda: is_ready(copy), 60, f"readiness; {ready(copy)}")
    assert rows(copy, "SELECT count(*) - count(DISTINCT name) FROM jobs_app_heartbeat") == [(0,)]
