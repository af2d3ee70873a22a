"""Comparing versions and unsaved text."""

import re
import time

import pytest
from django.urls import reverse

from tests.factories import AgentFactory
from tests.history_pages import edit, page, version
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def text(response):
    return response.content.decode()


def test_changed_words_are_marked(viewer, story):
    both = text(page(viewer, "compare", story, **{"from": "1", "to": "2"}))

    assert "Greet guests<ins> warmly</ins>." in both
    assert "Unchanged: Name" in both


def test_lists_and_json_have_their_own_rows(viewer, story):
    edit(story, tools=["word-count", "search"], metadata={"team": {"size": 3}})

    both = text(page(viewer, "compare", story, **{"from": "3", "to": "4"}))

    assert "change-added" in both
    assert '<span class="path">team.size</span>' in both


@pytest.mark.parametrize(("params", "heading"), [("live", "v3"), ("head", "v4")])
def test_live_and_head_name_versions(viewer, drafted, params, heading):
    both = text(page(viewer, "compare", drafted, **{"from": "1", "to": params}))

    assert f"<title>v1 and {heading} of" in both


def test_the_draft_is_compared_with_live_by_default(viewer, drafted):
    assert "<title>v3 and v4 of" in text(page(viewer, "compare", drafted))


def test_without_a_draft_live_is_compared_with_the_version_before_it(viewer, story):
    assert "<title>v2 and v3 of" in text(page(viewer, "compare", story))


def test_a_single_version_is_compared_with_nothing(viewer):
    only = text(page(viewer, "compare", AgentFactory(id="only")))

    assert "There is only one version" in only
    assert 'href="/agents/only">Open the editor' in only


@pytest.mark.parametrize("params", ["99", "x", "-1", "9" * 40, "٣", "None"])
def test_an_invalid_version_is_not_found(viewer, story, params):
    assert page(viewer, "compare", story, **{"from": "1", "to": params}).status_code == 404


def test_two_selected_versions_are_compared_oldest_first(viewer, story):
    response = page(viewer, "compare", story, version=["3", "1"])

    assert response.headers["Location"].endswith("/compare?from=1&to=3")


@pytest.mark.parametrize(
    ("ticked", "query"),
    [(["2"], "from=2&to=head"), (["x"], "/compare"), (["3"], "/compare"), (["1", "2", "3"], "from=1&to=3")],
)
def test_any_number_of_selected_versions_shows_a_page(viewer, story, ticked, query):
    assert page(viewer, "compare", story, version=ticked).headers["Location"].endswith(query)


def test_a_version_compared_with_itself_shows_a_hint(viewer, story):
    assert "You selected the same version twice" in text(page(viewer, "compare", story, **{"from": "2", "to": "2"}))


def test_unchanged_lines_are_folded_and_can_be_opened(viewer, story):
    lines = [f"Rule {number}" for number in range(50)]
    edit(story, instructions="\n".join(lines))
    edit(story, instructions="\n".join([*lines[:-1], "Rule last"]))
    params = {"from": "4", "to": "5"}

    folded = text(page(viewer, "compare", story, **params))
    opened = text(page(viewer, "compare", story, **params, unfold="instructions-1"))

    assert "Show 46 unchanged lines" in folded
    assert "Rule 7" not in folded
    assert 'hx-select="#fold-instructions-1"' in folded
    assert "Rule 7" in opened
    assert '<tbody id="fold-instructions-1">' in opened


def test_every_change_has_a_number_for_stepping(viewer, story):
    edit(story, name="Doorman", tools=[], metadata={"a": 1, "b": 2})

    for layout in ("sides", "unified"):
        both = text(page(viewer, "compare", story, **{"from": "1", "to": "4", "layout": layout}))
        assert re.findall(r'data-change="(\d+)"', both) == ["1", "2", "3", "4"]


def test_swapping_keeps_the_layout(viewer, story):
    both = text(page(viewer, "compare", story, **{"from": "1", "to": "live", "layout": "unified"}))

    assert 'href="?from=live&amp;to=1&amp;layout=unified"' in both


def test_a_comparison_offers_restore_and_publish(publisher, story):
    both = text(page(publisher, "compare", story, **{"from": "1", "to": "live"}))

    assert "Restore v1" in both
    assert "Publish v1" in both
    assert "Publish v3" not in both


def test_a_comparison_takes_few_queries(viewer, story, django_assert_max_num_queries):
    with django_assert_max_num_queries(6):
        page(viewer, "compare", story, **{"from": "1", "to": "3"})


HUGE = "\n".join(
    f"{number}. Answer politely, and name case {number} in the first line of it." for number in range(3200)
)


@pytest.mark.parametrize(
    "after",
    [
        HUGE.replace("politely", "promptly"),
        HUGE[::-1],
        HUGE.replace("\n", " "),
        HUGE.replace("1500. Answer", "1500. Always answer"),
        "",
    ],
    ids=["every line", "nothing shared", "one line", "one word", "emptied"],
)
def test_200_kb_of_instructions_are_compared_fast(viewer, story, after):
    edit(story, instructions=HUGE)
    edit(story, instructions=after)
    began = time.thread_time()

    response = page(viewer, "compare", story, **{"from": "4", "to": "5"})

    assert len(HUGE) > 200_000
    assert response.status_code == 200
    assert time.thread_time() - began < 5
    assert len(response.content) < 3_500_000


def test_a_history_with_huge_texts_stays_fast(viewer, story):
    for number in range(0, 3000, 150):
        edit(story, instructions=HUGE.replace(f"\n{number}. Answer", f"\n{number}. Always answer"))
    began = time.thread_time()

    page(viewer, "list", story)

    assert time.thread_time() - began < 3


def test_unsaved_text_is_compared_with_the_saved_version(editor, story):
    response = editor.post(
        reverse("versions:review", args=[story.pk]), editor_form(story, name="Doorman"), headers=HTMX
    )

    page_text = text(response)
    assert "since v3" in page_text
    assert "Doorman" in page_text
    assert "<html" not in page_text
    assert version(story, 3).snapshot["name"] == "Concierge"


def test_unsaved_text_is_compared_with_live_or_a_version(editor, drafted):
    sent = editor_form(drafted, instructions="Greet everybody.")

    live = text(editor.post(reverse("versions:review", args=[drafted.pk]), {**sent, "against": "live"}))
    first = text(editor.post(reverse("versions:review", args=[drafted.pk]), {**sent, "against": "1"}))

    assert "since live, v3" in live
    assert "Doorman" in live, "the draft ahead counts too"
    assert "since v1" in first
    assert "search" in first


def test_an_invalid_field_is_named_and_the_others_are_compared(editor, story):
    sent = editor_form(story, metadata='{"a": ', name="Doorman")

    page_text = text(editor.post(reverse("versions:review", args=[story.pk]), sent))

    assert "the value is invalid" in page_text
    assert "Metadata" in page_text
    assert "Doorman" in page_text


def test_a_review_writes_nothing(editor, story):
    editor.post(reverse("versions:review", args=[story.pk]), editor_form(story, name="Doorman"))

    assert story.versions.count() == 3
