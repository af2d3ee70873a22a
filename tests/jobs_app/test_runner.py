"""Running jobs: leases, retries, errors and late jobs."""

import errno
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.db.models.signals import post_save
from django.utils import timezone

from access_app.role import Role, RoleRequired
from agentcms.errors import Unavailable
from jobs_app import runner
from jobs_app.models import MAX_ATTEMPTS, Job, LeaseLost, lease_duration
from tests.broker import broker

pytestmark = pytest.mark.django_db


@pytest.fixture
def counting_job():
    """Register a kind of job that counts its calls."""
    done = []

    @runner.job_handler("counting")
    def count(job):
        done.append(job.pk)
        return {"times": len(done)}

    return done


def stored(**fields):
    return Job.objects.create(**{"kind": "counting", **fields})


def expire_lease(seconds):
    return timezone.now() - timedelta(seconds=seconds)


def test_a_finished_job_stores_its_result(counting_job):
    job = runner.run_claimed(str(stored().pk))

    assert (job.state, job.result, job.attempts) == ("done", {"times": 1}, 1)


def test_a_job_run_by_a_command_is_never_queued(counting_job):
    states = []

    def look(instance, **_):
        states.append(instance.state)
        assert runner.run_claimed(str(instance.pk)) is None  # as a fast worker would

    post_save.connect(look, sender=Job)
    try:
        job = runner.run_now("counting", {"fast": True})
    finally:
        post_save.disconnect(look, sender=Job)

    assert (states, job.state, job.parameters, len(counting_job)) == (["running"], "done", {"fast": True}, 1)


def test_a_second_message_for_a_job_has_no_effect(counting_job):
    job = stored()

    runner.run_claimed(str(job.pk))
    again = runner.run_claimed(str(job.pk))

    assert (again, len(counting_job)) == (None, 1)


def test_a_job_of_a_dead_worker_is_taken_over(counting_job):
    job = stored(state="running", attempts=1, lease_until=expire_lease(1))

    assert runner.run_claimed(str(job.pk)).attempts == 2


def test_a_job_of_a_living_worker_is_not_taken_over(counting_job):
    job = stored(state="running", attempts=1, lease_until=expire_lease(-60))

    assert runner.run_claimed(str(job.pk)) is None


def test_a_worker_that_lost_its_lease_writes_nothing(counting_job):
    job = Job.objects.claim(stored().pk)
    Job.objects.filter(pk=job.pk).update(attempts=2)

    with pytest.raises(LeaseLost):
        job.finish("late")
    assert Job.objects.get().result is None


def test_a_job_that_fails_after_its_deletion_ends_quietly(caplog):
    @runner.job_handler("raising")
    def delete_and_fail(job):
        Job.objects.filter(pk=job.pk).delete()
        raise ValueError("No such file.")

    runner.run_claimed(str(stored(kind="raising").pk))

    assert not Job.objects.exists()
    assert "was deleted, stopped, or taken over" in caplog.text


def test_a_job_that_raises_stores_the_error():
    @runner.job_handler("raising")
    def fail(job):
        raise ValueError("No such file.")

    job = runner.run_claimed(str(stored(kind="raising").pk))

    assert (job.state, job.error) == ("failed", "ValueError: No such file.")


def test_a_job_without_the_role_that_it_needs_says_so_in_a_sentence():
    @runner.job_handler("unauthorized")
    def fail(job):
        raise RoleRequired(Role.EDITOR, "support")

    job = runner.run_claimed(str(stored(kind="unauthorized").pk))

    assert (job.state, job.error) == ("failed", "This needs the Editor role in support.")


def test_a_job_without_its_file_fails_at_once():
    @runner.job_handler("reading")
    def read(job):
        Path("/nowhere/at-all").read_text()

    job = runner.run_claimed(str(stored(kind="reading").pk))

    assert (job.state, job.error.split(":")[0]) == ("failed", "FileNotFoundError")


def test_a_job_of_an_unknown_kind_stays_queued(monkeypatch):
    monkeypatch.setattr(runner, "_handlers", {**runner._handlers})
    job = stored(kind="of_tomorrow")

    assert runner.run_claimed(str(job.pk)) is None
    assert runner.send_due() == 0
    assert list(Job.objects.due()) == [job]

    @runner.job_handler("of_tomorrow")
    def do(job):
        return "done"

    assert runner.run_claimed(str(job.pk)).attempts == 1


def test_a_job_that_kills_every_worker_fails(counting_job):
    job = stored(state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1))

    runner.send_due()

    job.refresh_from_db()
    assert job.state == "failed"


@pytest.fixture
def noted_job(monkeypatch):
    """Register a kind of job whose failure is noted elsewhere. Return the notes."""
    noted = []
    monkeypatch.setattr(runner, "_handlers", {**runner._handlers})
    monkeypatch.setattr(runner, "_when_given_up", {**runner._when_given_up})
    runner.job_handler("noted", "", noted.append)(lambda job: None)
    return noted


def test_a_job_that_cannot_be_given_up_holds_up_no_others(counting_job, noted_job, monkeypatch):
    def raise_lock_timeout(job):
        raise OperationalError("lock timeout")

    monkeypatch.setitem(runner._when_given_up, "noted", raise_lock_timeout)
    locked = stored(kind="noted", state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1))
    other = stored(state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1))
    waiting = stored()

    assert runner.send_due() == 1

    assert list(Job.objects.due().order_by("created_at")) == [locked, waiting]
    assert Job.objects.get(pk=other.pk).state == "failed"


def test_a_lease_that_expires_while_others_are_given_up_is_noted_too(counting_job, noted_job, monkeypatch):
    late = []

    def expire_another(job):
        noted_job.append(job)
        if not late:
            late.append(stored(kind="noted", state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1)))

    monkeypatch.setitem(runner._when_given_up, "noted", expire_another)
    first = stored(kind="noted", state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1))

    runner.send_due()
    runner.send_due()

    assert noted_job == [first, *late]


def test_a_job_that_was_given_up_says_why_and_has_no_lease(counting_job, noted_job):
    for kind in ("counting", "noted"):
        stored(kind=kind, state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(1))

    runner.send_due()

    for job in Job.objects.all():
        assert (job.state, job.error, job.lease_until) == ("failed", runner.GIVEN_UP_MESSAGE, None)
        assert job.finished_at is not None


def test_a_stuck_job_fails_and_its_handler_writes_nothing(noted_job, monkeypatch):
    errors = []

    def hang(job):
        runner.give_up_stuck(job)  # as the thread that renews its lease
        with pytest.raises(LeaseLost) as lost:
            job.report_progress(done=1)
        errors.append(lost)

    monkeypatch.setitem(runner._handlers, "noted", hang)
    job = stored(kind="noted")

    runner.run_claimed(str(job.pk))

    failed = Job.objects.get()
    assert (failed.state, failed.done, len(errors)) == ("failed", 0, 1)
    assert failed.error.startswith("The job made no progress for 6 hours.")
    assert noted_job == [job]


def test_the_last_attempt_of_a_living_worker_is_not_given_up(counting_job, noted_job):
    for kind in ("counting", "noted"):
        stored(kind=kind, state="running", attempts=MAX_ATTEMPTS, lease_until=expire_lease(-60))

    runner.send_due()

    assert [job.state for job in Job.objects.all()] == ["running"] * 2
    assert noted_job == []


def test_a_job_that_is_retried_while_another_is_given_up_is_not_given_up(noted_job, monkeypatch):
    old = {"kind": "noted", "state": "running", "attempts": MAX_ATTEMPTS, "lease_until": expire_lease(1)}
    for _ in range(2):
        stored(**old)

    def retry_the_other(job):
        noted_job.append(job)
        other = Job.objects.exclude(pk=job.pk)
        other.update(state="failed")
        other.get().requeue()

    monkeypatch.setitem(runner._when_given_up, "noted", retry_the_other)

    runner.give_up_jobs()

    assert len(noted_job) == 1
    assert sorted(Job.objects.values_list("state", flat=True)) == ["failed", "queued"]


def test_an_unavailable_broker_delays_a_job(counting_job, django_capture_on_commit_callbacks):
    nobody_listens = "redis://127.0.0.1:1/0"

    with broker(nobody_listens), django_capture_on_commit_callbacks(execute=True):
        job = runner.enqueue("counting")

    assert list(Job.objects.due()) == [job]


def test_a_broker_that_hangs_delays_one_job(counting_job, django_capture_on_commit_callbacks):
    with socket.create_server(("127.0.0.1", 0)) as silent, broker(f"redis://127.0.0.1:{silent.getsockname()[1]}/0"):
        began = time.monotonic()
        with django_capture_on_commit_callbacks(execute=True):
            jobs = {runner.enqueue("counting") for _ in range(10)}
        seconds = time.monotonic() - began

    assert set(Job.objects.due()) == jobs
    assert seconds < 4  # the timeout is one second


def test_jobs_are_sent_again_after_the_pause(counting_job, monkeypatch):
    job = stored()
    sent = []
    monkeypatch.setattr(runner.current_app, "send_task", lambda name, arguments, **options: sent.append(arguments))
    runner.broker_circuit.record_failure()
    runner.send_due()
    assert sent == []

    retry_at = runner.broker_circuit._retry_at
    monkeypatch.setattr("agentcms.backends.circuit_breaker.monotonic", lambda: retry_at)
    runner.send_due()

    assert sent == [[str(job.pk)]]
    assert not runner.broker_circuit.is_open


def test_two_schedulers_create_one_job(counting_job):
    century = timedelta(days=36_500)  # a period that does not end between both calls
    first, second = (
        runner.enqueue_once_per_period("counting", century),
        runner.enqueue_once_per_period("counting", century),
    )

    assert (first.kind, second) == ("counting", None)


def test_a_job_of_a_dead_worker_is_taken_over_after_the_clock_was_set_back(counting_job):
    job = stored(state="running", attempts=1, lease_until=expire_lease(-3600))
    done = stored(state="done", lease_until=expire_lease(-3600))

    runner.send_due()

    job.refresh_from_db()
    done.refresh_from_db()
    assert job.lease_until - timezone.now() <= lease_duration()
    assert done.lease_until - timezone.now() > lease_duration()


def test_the_lease_of_a_living_worker_is_not_shortened(counting_job):
    job = stored(state="running", attempts=1, lease_until=timezone.now() + lease_duration())

    runner.send_due()

    assert Job.objects.get().lease_until == job.lease_until


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_worker_with_another_clock_has_its_job_as_long_as_the_others(counting_job, monkeypatch, seconds):
    right_time, job = timezone.now, stored()
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: right_time() + timedelta(seconds=seconds))
        claimed = Job.objects.claim(job.pk)
        runner.send_due()
        assert Job.objects.claim(job.pk) is None
        claimed.report_progress(done=1)

    assert runner.run_claimed(str(job.pk)) is None
    assert abs(Job.objects.get().lease_until - timezone.now() - lease_duration()) < timedelta(seconds=10)
    claimed.finish({})


def test_a_job_that_is_deleted_while_it_is_claimed_does_not_run(counting_job):
    job = stored()

    def delete_once_claimed(execute, sql, *arguments):
        result = execute(sql, *arguments)
        if sql.startswith('UPDATE "jobs_app_job"'):
            Job.objects.filter(pk=job.pk).delete()
        return result

    with connection.execute_wrapper(delete_once_claimed):
        assert runner.run_claimed(str(job.pk)) is None

    assert counting_job == []


def test_a_job_queued_too_long_is_late(counting_job):
    assert stored(created_at=expire_lease(600)).is_late
    assert not stored().is_late


def test_late_jobs_can_be_queried(counting_job):
    waits = stored(created_at=expire_lease(600))
    died = stored(state="running", attempts=1, lease_until=expire_lease(1))
    stored(state="running", attempts=1, lease_until=expire_lease(-60))
    stored(state="done", created_at=expire_lease(600))

    assert set(Job.objects.late()) == {waits, died}
    assert {job for job in Job.objects.all() if job.is_late} == {waits, died}


def test_a_requeued_job_continues_at_its_cursor(counting_job):
    job = stored(state="failed", attempts=MAX_ATTEMPTS, cursor={"after": 7}, error="Gone.")

    job.requeue()

    job = runner.run_claimed(str(job.pk))
    assert (job.state, job.attempts, job.cursor, job.error) == ("done", 1, {"after": 7}, "")


def test_a_requeued_job_waits_like_a_new_one(counting_job):
    job = stored(state="failed", created_at=expire_lease(600), finished_at=timezone.now())

    job.requeue()

    job.refresh_from_db()
    assert (job.state, job.finished_at, job.is_late) == ("queued", None, False)


@pytest.mark.parametrize("state", ["queued", "running", "done"])
def test_a_job_that_has_not_failed_is_not_requeued(counting_job, state):
    job = stored(state=state, attempts=1)

    job.requeue()

    job.refresh_from_db()
    assert (job.state, job.attempts) == (state, 1)


PASSING = [OperationalError("server closed the connection"), InterfaceError("closed"), OSError(errno.ENOSPC, "full")]
PASSING += [OSError(errno.EROFS, "read-only"), Unavailable("The bucket does not respond.")]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_a_job_is_retried_after_a_database_outage_or_a_full_disk(error):
    @runner.job_handler("interrupted")
    def interrupt(job):
        raise error

    job = runner.run_claimed(str(stored(kind="interrupted").pk))

    job.refresh_from_db()
    assert job.state == "running"
    Job.objects.update(lease_until=expire_lease(1))
    assert list(Job.objects.due()) == [job]


@pytest.mark.parametrize(("error", "has_traceback"), [(Unavailable("Nobody answered."), False), (PASSING[0], True)])
def test_an_interruption_whose_cause_is_known_is_logged_in_one_line(error, has_traceback, caplog):
    @runner.job_handler("interrupted")
    def interrupt(job):
        raise error

    runner.run_claimed(str(stored(kind="interrupted").pk))

    assert [bool(record.exc_info) for record in caplog.records] == [has_traceback]
    assert "was interrupted" in caplog.text


def test_a_worker_that_resumes_after_a_requeue_writes_nothing(counting_job):
    job = Job.objects.claim(stored().pk)
    Job.objects.filter(pk=job.pk).update(state="failed")
    Job.objects.get().requeue()
    Job.objects.claim(job.pk)

    with pytest.raises(LeaseLost):
        job.finish("late")


def test_an_error_with_characters_that_no_database_stores_fails_the_job_at_once(monkeypatch):
    monkeypatch.setattr(runner.log, "disabled", True)  # pytest-xdist cannot send such a text to its main process

    @runner.job_handler("quoting")
    def quote(job):
        raise ValueError("Line 7 is 'a\0b\ud800'.")

    job = runner.run_claimed(str(stored(kind="quoting").pk))

    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "ValueError: Line 7 is 'a\ufffdb\ufffd'.")
