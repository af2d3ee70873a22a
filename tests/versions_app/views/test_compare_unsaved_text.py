"""Comparing the unsaved text of the editor with a version, on the page that compares versions."""

import re

import pytest
from django.urls import reverse

from tests.history_pages import agent_state, page
from tests.page_client import editor_form

pytestmark = pytest.mark.django_db


def compare(client, agent, before, after, **changed):
    sent = {**editor_form(agent, **changed), "from": before, "to": after}
    return client.post(reverse("versions:compare", args=[agent.pk]), sent)


def test_unsaved_text_is_either_side(editor, story):
    to = compare(editor, story, "1", "unsaved", description="At the door").content.decode()
    back = compare(editor, story, "unsaved", "live", description="At the door").content.decode()

    assert "<title>v1 and My unsaved text of Concierge" in to
    assert 'id="section-instructions"' in to
    assert re.search(r'class="text added-side"[^>]*>(<ins>)?At the door', to)
    assert "<title>My unsaved text and v3 of Concierge" in back
    assert re.search(r'class="text removed-side"[^>]*>(<del>)?At the door', back)


def test_comparing_unsaved_text_stores_nothing(editor, story):
    before = agent_state(story)

    assert compare(editor, story, "live", "unsaved", name="Doorman").status_code == 200
    assert agent_state(story) == before


@pytest.mark.parametrize("rules", ["[1]", "7", '{"conditions": 5}', '{"conditions": [5]}'])
def test_variants_that_are_not_valid_are_left_out(editor, story, rules):
    variant = {"conditional": "shown", "variant-model": ["a"], "variant-model-a-json": "{}"}
    sent = {**variant, "variant-model-a-rules": rules}

    compared = compare(editor, story, "live", "unsaved", description="At the door", **sent)
    reviewed = editor.post(
        reverse("versions:review", args=[story.pk]), editor_form(story, description="At the door", **sent)
    )

    for answer in (compared, reviewed):
        assert answer.status_code == 200
        assert 'id="section-description"' in answer.content.decode()
        assert 'id="section-conditional"' not in answer.content.decode()


def test_the_text_is_posted_again_to_open_folds_and_to_change_the_layout(editor, story):
    lines = "\n".join(f"Rule {number}" for number in range(40))
    first = compare(editor, story, "live", "unsaved", instructions=f"{lines}\nBe kind.").content.decode()

    assert (
        '<button class="button button-small" type="submit" form="posted-fields" name="layout" value="unified">'
        in first
    )
    assert 'name="from" hidden>\nlive</textarea>' in first
    assert "Be kind." in first[: first.index("</form>", first.index("posted-fields"))]
    assert "Copy link" not in first


def test_a_link_to_unsaved_text_compares_the_draft(viewer, drafted):
    html = page(viewer, "compare", drafted, **{"from": "unsaved", "to": "1"}).content.decode()

    assert "<title>v4 and v1 of" in html


def test_a_comparison_has_a_link_that_keeps_its_versions(viewer, drafted):
    html = page(viewer, "compare", drafted).content.decode()

    path = reverse("versions:compare", args=[drafted.pk])
    assert f"http://testserver{path}?from=3&amp;to=4</span>" in html
    assert 'data-copy="compare-link"' in html


@pytest.mark.parametrize(("mobile", "layout"), [("?1", "unified"), ("?0", "sides")])
def test_phones_compare_texts_in_one_column(viewer, story, mobile, layout):
    url = f"{reverse('versions:compare', args=[story.pk])}?from=1&to=2"
    response = viewer.get(url, headers={"Sec-CH-UA-Mobile": mobile})

    assert f'name="layout" value="{layout}"' in response.content.decode()
    assert "Sec-CH-UA-Mobile" in response["Vary"]
    explicit = viewer.get(f"{url}&layout=sides", headers={"Sec-CH-UA-Mobile": mobile})
    assert "diff-sides" in explicit.content.decode()
