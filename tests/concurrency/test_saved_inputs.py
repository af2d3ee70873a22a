"""Saving inputs of the playground at the same time."""

from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError

import pytest
from django.urls import reverse

from access_app.role import Role
from runs_app.models import SavedInput
from tests.concurrently import run_concurrently
from tests.factories import AgentFactory
from tests.page_client import browser, member

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_requests_at_the_same_time_do_not_exceed_the_number_of_saved_inputs(monkeypatch):
    monkeypatch.setattr("runs_app.views.saved_inputs.MAX_SAVED_INPUTS", 1)
    agent, user, both_have_counted = AgentFactory(), member(Role.EDITOR), Barrier(2)
    store = SavedInput.objects.update_or_create

    def wait_and_store(**values):
        with suppress(BrokenBarrierError):  # the other one waits until this one has ended
            both_have_counted.wait(0.5)
        return store(**values)

    monkeypatch.setattr(SavedInput.objects, "update_or_create", wait_and_store)
    post = partial(browser(user).post, reverse("runs:save_input", args=[agent.pk]), headers={"HX-Request": "true"})

    answers = run_concurrently([partial(post, {"input_name": name, "message": "Hello"}) for name in ("One", "Two")])

    assert SavedInput.objects.count() == 1, answers
