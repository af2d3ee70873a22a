"""Slots for long jobs in a worker, which owners share."""

import pytest

from jobs_app import runner
from jobs_app.models import Job
from jobs_app.slots import JobSlots

pytestmark = pytest.mark.django_db


def test_jobs_of_owners_take_turns():
    slots = JobSlots(lambda: 2)
    owners = {Job.objects.create_claimed("read", {}): owner for owner in ("support", "support", "support", "sales")}
    third, other = [*owners][2:]

    taken = [slots.take(job, owner) for job, owner in owners.items()]
    slots.free("support")
    out_of_turn = slots.take(Job.objects.claim(third.pk), "support")
    in_turn = slots.take(Job.objects.claim(other.pk), "sales")
    slots.free("support")

    assert taken == [True, True, False, False]
    assert (out_of_turn, in_turn) == (False, True)
    assert slots.take(Job.objects.claim(third.pk), "support")
    assert (slots.taken, slots.waiting) == (2, {})


@pytest.fixture
def sent(monkeypatch):
    """Return the IDs of the jobs that a worker is told to take."""
    ids = []
    monkeypatch.setattr(runner, "send_job", ids.append)
    return ids


def waiting_for(slots, *owners):
    """Return a new job of each owner, for none of which there is a slot."""
    jobs = [Job.objects.create_claimed("read", {}) for _ in owners]
    assert not any(slots.take(job, owner) for job, owner in zip(jobs, owners, strict=True))
    return jobs


def full_slots(owner_id=""):
    """Return one slot, which a job of an owner has taken."""
    slots = JobSlots(lambda: 1)
    assert slots.take(Job.objects.create_claimed("read", {}), owner_id)
    return slots


def test_the_owner_who_had_a_slot_longest_ago_is_first(sent):
    slots = full_slots("support")
    _, of_sales = waiting_for(slots, "support", "sales")

    slots.free("support")

    assert sent == [of_sales.pk]


def test_a_second_job_of_an_owner_waits_for_the_first_ones_of_others(sent):
    limit = [1]
    slots = JobSlots(lambda: limit[0])
    slots.take(Job.objects.create_claimed("read", {}), "marketing")
    _, second, of_sales = waiting_for(slots, "support", "support", "sales")

    limit[0] = 3

    assert not slots.take(Job.objects.claim(second.pk), "support")
    assert slots.take(Job.objects.claim(of_sales.pk), "sales")


@pytest.mark.parametrize("leave", [Job.delete, lambda job: Job.objects.claim(job.pk)], ids=["deleted", "taken"])
def test_a_job_that_left_the_queue_holds_up_no_other(sent, leave):
    slots = full_slots()
    first, second = waiting_for(slots, "", "")

    leave(first)
    slots.free()

    assert sent == [second.pk]
    assert slots.take(Job.objects.claim(second.pk))


def test_a_free_slot_that_nobody_waits_for_calls_no_job(sent):
    full_slots().free()

    assert sent == []


def test_a_job_without_a_slot_is_queued_again_and_not_worked_on(sent):
    slots = full_slots()
    job, worked = Job.objects.create_claimed("read", {}), []

    assert slots.run(job, worked.append) is runner.CONTINUES
    job.refresh_from_db()
    assert (worked, job.state) == ([], Job.State.QUEUED)


def test_a_job_that_fails_frees_its_slot(sent):
    slots = JobSlots(lambda: 1)

    def fail(job):
        raise ValueError(f"{slots.taken} is taken")

    with pytest.raises(ValueError, match="1 is taken"):
        slots.run(Job.objects.create_claimed("read", {}), fail)

    assert slots.taken == 0
