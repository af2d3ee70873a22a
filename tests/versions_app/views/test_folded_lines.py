"""Folded unchanged lines."""

import pytest
from django.urls import reverse

from tests.history_pages import edit, page
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db
LINES = [f"Rule {number}" for number in range(50)]
LONG = "\n".join(LINES)


def test_folds_open_on_the_page_of_a_version(viewer, story):
    edit(story, instructions=LONG)
    edit(story, instructions=f"{LONG}!")

    folded = page(viewer, "view", story, 5).content.decode()
    opened = page(viewer, "view", story, 5, unfold="instructions-1").content.decode()

    assert "Show 46 unchanged lines" in folded
    assert "Show 46 unchanged lines" not in opened
    assert '<details class="version-change" id="changed" open>' in opened


def test_folds_open_in_the_review_of_unsaved_text(editor, story):
    edit(story, instructions=LONG)
    address = reverse("versions:review", args=[story.pk])
    sent = editor_form(story, instructions=f"{LONG}!")
    htmx = {"HX-Request": "true"}

    folded = editor.post(address, sent, headers=htmx).content.decode()
    opened = editor.post(address, {**sent, "unfold": "instructions-1"}, headers=htmx).content.decode()

    assert """hx-vals='{"against": "head", "unfold": "instructions-1"}'""" in folded
    assert "Rule 7" not in folded
    assert "Rule 7" in opened


def test_folds_open_in_the_review_without_javascript(editor, story):
    edit(story, instructions=LONG)
    address = reverse("versions:review", args=[story.pk])
    sent = editor_form(story, instructions=f"{LONG}!", description='Says "hi"')

    folded = editor.post(address, sent)
    again = dict(folded.context["posted_fields"])
    opened = editor.post(address, {**again, "unfold": "instructions-1"}).content.decode()

    assert again["description"] == 'Says "hi"'
    assert 'form="agent-form"' in folded.content.decode()
    assert "Rule 7</td>" not in folded.content.decode()
    assert "Rule 7</td>" in opened


def test_folds_open_on_both_sides_of_a_conflict(editor, story):
    edit(story, instructions=LONG)
    sent = editor_form(story, instructions=f"{LONG}!")
    edit(story, instructions=f"?{LONG}")
    address = reverse("versions:conflict", args=[story.pk])

    folded = editor.post(address, sent).content.decode()
    theirs = editor.post(address, {**sent, "unfold": "theirs-instructions-5"}).content.decode()
    mine = editor.post(address, {**sent, "unfold": "mine-instructions-1"}).content.decode()

    assert folded.count("unchanged lines</button>") == 2
    assert theirs.count("unchanged lines</button>") == 1
    assert mine.count("unchanged lines</button>") == 1
