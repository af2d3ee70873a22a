"""Scores by people on the page of a run."""

import pytest
from django.urls import reverse

from runs_app.models import Score
from tests.factories import AgentFactory, member
from tests.page_client import browser
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return RunFactory(agent=AgentFactory(owner_id="support"))


def send(user, run, **fields):
    return browser(user).post(reverse("runs:score", args=[run.pk]), fields)


def test_an_editor_scores_and_comments(run):
    editor = member("editor", "support", username="eve")
    run.requested_by = editor
    run.save()

    response = send(editor, run, score="0.25", comment="Too <short>.")

    score = Score.objects.get()
    assert (score.score, score.reason, score.source, score.created_by) == (0.25, "Too <short>.", "PERSON", editor)
    html = browser(editor).get(response.url).content.decode()
    assert "eve" in html
    assert "Too &lt;short&gt;." in html


@pytest.mark.parametrize("fields", [{"score": "2"}, {"score": "many"}, {}])
def test_a_wrong_score_is_named_at_its_field_and_not_stored(run, fields):
    response = send(member("publisher", "support"), run, **fields)

    assert response.status_code == 400
    assert b"Enter a" in response.content
    assert not Score.objects.exists()


@pytest.mark.parametrize("state", [{"open": True}, {"suspended": True}])
def test_an_unfinished_run_cannot_be_scored(state):
    editor = member("editor", "support")
    run = RunFactory(agent=AgentFactory(owner_id="support"), requested_by=editor, **state)

    response = send(editor, run, score="1")

    assert response.status_code == 409
    assert "The run has not finished. Score it when it has." in response.content.decode()
    assert not Score.objects.exists()


def test_a_viewer_cannot_score_and_sees_no_form(run):
    viewer = member("viewer", "support")
    run.requested_by = viewer
    run.save()

    assert send(viewer, run, score="1").status_code == 403
    assert "Score this answer" not in browser(viewer).get(f"/runs/{run.pk}").content.decode()


def test_a_stranger_gets_404(run):
    assert send(member("publisher", "other"), run, score="1").status_code == 404
