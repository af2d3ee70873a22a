"""Unchanged lines open where they are folded: on the page of a version, and in the review of unsaved text."""

import pytest
from django.urls import reverse

from tests.pages.conftest import typed
from tests.pages.versions.conftest import edit, page

pytestmark = pytest.mark.django_db
LINES = [f"Rule {number}" for number in range(50)]
LONG = "\n".join(LINES)


def test_folds_open_on_the_page_of_a_version(viewer, story):
    edit(story, instructions=LONG)
    edit(story, instructions=f"{LONG}!")

    folded = page(viewer, "view", story, 5).content.decode()
    opened = page(viewer, "view", story, 5, unfold="instructions-1").content.decode()

    assert "46 unchanged lines: show" in folded
    assert "46 unchanged lines: show" not in opened
    assert '<details class="section" id="changed" open>' in opened


def test_folds_open_in_the_review_of_unsaved_text(editor, story):
    edit(story, instructions=LONG)
    address = reverse("versions:review", args=[story.pk])
    sent = typed(story, instructions=f"{LONG}!")
    htmx = {"HX-Request": "true"}

    folded = editor.post(address, sent, headers=htmx).content.decode()
    opened = editor.post(address, {**sent, "unfold": "instructions-1"}, headers=htmx).content.decode()

    assert """hx-vals='{"against": "head", "unfold": "instructions-1"}'""" in folded
    assert "Rule 7" not in folded
    assert "Rule 7" in opened
