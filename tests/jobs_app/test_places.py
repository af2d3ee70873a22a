"""Places for long jobs in a worker, which owners share."""

import pytest

from jobs_app.models import Job
from jobs_app.places import JobPlaces

pytestmark = pytest.mark.django_db


def test_jobs_of_owners_take_turns():
    places = JobPlaces(lambda: 2)
    owners = {Job.objects.create_claimed("read", {}): owner for owner in ("support", "support", "support", "sales")}
    third, other = [*owners][2:]

    taken = [places.take(job, owner) for job, owner in owners.items()]
    places.free("support")
    out_of_turn = places.take(Job.objects.claim(third.pk), "support")
    in_turn = places.take(Job.objects.claim(other.pk), "sales")
    places.free("support")

    assert taken == [True, True, False, False]
    assert (out_of_turn, in_turn) == (False, True)
    assert places.take(Job.objects.claim(third.pk), "support")
    assert (places.taken, places.waiting) == (2, {})
