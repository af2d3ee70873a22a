"""Slots for long jobs in a worker, which owners share."""

import pytest

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
