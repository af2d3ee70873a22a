"""The history page: versions, filters and queries."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.urls import reverse

from access_app.role import Role
from tests.factories import member
from tests.form_submission import form_data
from tests.history_pages import act, edit, page, version
from tests.page_client import browser
from versions_app.models import Activation, AgentVersion

pytestmark = pytest.mark.django_db

HOSTILE = """<script>alert(1)</script><img src=x onerror="alert(2)">'"{{ 7|add:1 }}{% now %}"""


def page_words(response):
    """Return the text of a page with single spaces."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def numbers(response):
    return [int(number) for number in re.findall(r'id="version-(\d+)"', response.content.decode())]


def test_automatic_messages_are_not_displayed(publisher, story):
    edit(story, description="At the door.")

    assert "Auto-saved" not in page_words(page(publisher, "list", story))


def test_versions_are_listed_newest_first_with_their_changes(publisher, drafted):
    response = page(publisher, "list", drafted)

    text = page_words(response)
    assert numbers(response) == [4, 3, 2, 1]
    assert "Name Concierge → Doorman" in text
    assert "Tools +search" in text
    assert "Instructions +1 −1" in text
    assert "First version" in text
    assert "Live v3 Draft ahead by 1" in text


def test_a_version_based_on_an_older_one_names_it(publisher, story):
    version(story, 1).activate()
    edit(story, memory="last-messages")

    assert "based on v1" in page_words(page(publisher, "list", story))


def test_a_manual_snapshot_names_the_equal_version(editor, story):
    act(editor, "snapshot", story, name="Before the fair")

    assert "Same as v3" in page_words(page(editor, "list", story))


def test_a_named_version_needs_a_name(editor, story):
    dialog = act(editor, "snapshot", story, name="", change_message="For safety")

    assert dialog.status_code == 422
    assert "This is required." in page_words(dialog)
    assert not story.versions.filter(version_number=4).exists()


def test_a_summary_outlives_the_base_version(publisher, story):
    version(story, 2).remove()

    assert "Tools changed" in page_words(page(publisher, "list", story))


def test_filters_are_in_the_url_and_can_be_removed(publisher, story):
    version(story, 2).update_description(name="Warm words")

    response = page(publisher, "list", story, named="on", field="instructions")

    assert numbers(response) == [2]
    assert 'href="?named=on"' in response.content.decode()
    assert 'href="?field=instructions"' in response.content.decode()


def test_the_value_of_a_filter_has_the_direction_of_its_text(publisher, story):
    html = page(publisher, "list", story, named="on", field="instructions").content.decode()

    assert '<span dir="auto"><b>Named only</b></span>' in html
    assert 'aria-label="Remove named only"' in html
    assert '<span dir="auto"><b>Changed</b> Instructions</span>' in html


def test_filtering_by_field_finds_its_changes(publisher, story):
    assert numbers(page(publisher, "list", story, field="tools")) == [3, 1]
    assert numbers(page(publisher, "list", story, field="integrationTools")) == [1]


def test_versions_are_filtered_by_author_and_date(story):
    user = member(Role.EDITOR, username="ann")
    client = browser(user)
    act(client, "snapshot", story, name="Before the fair")
    first, last = (version(story, number).created_at for number in (1, 4))

    assert numbers(page(client, "list", story, author="ann")) == [4]
    assert numbers(page(client, "list", story, since=f"{first:%Y-%m-%d}")) == [4, 3, 2, 1]
    assert numbers(page(client, "list", story, since=f"{last + timedelta(days=1):%Y-%m-%d}")) == []
    assert numbers(page(client, "list", story, until=f"{last:%Y-%m-%d}")) == [4, 3, 2, 1]


def test_an_invalid_date_is_reported(publisher, story):
    response = page(publisher, "list", story, since="yesterday")

    assert numbers(response) == [3, 2, 1]
    assert "Enter a valid date." in page_words(response)


def test_an_empty_history_differs_from_no_match(publisher, story):
    text = page_words(page(publisher, "list", story, named="on"))

    assert "No matching versions" in text
    assert "All versions" in text


@pytest.mark.parametrize(
    "query", [{"page": "x"}, {"page": "-1"}, {"page": "9" * 30}, {"field": "x"}, {"since": "32"}, {"author": "\x00"}]
)
def test_no_query_parameter_is_a_server_error(publisher, story, query):
    assert page(publisher, "list", story, **query).status_code == 200


def test_pruned_versions_are_mentioned(publisher, story, settings):
    settings.AGENT_VERSION_LIMIT = 5
    for number in range(6):
        edit(story, description=str(number))

    text = page_words(page(publisher, "list", story))

    assert "4 older versions were pruned or deleted. Pruning never removes" in text


@pytest.mark.parametrize(("name", "number"), [("list", ()), ("view", (3,))])
def test_nothing_leads_to_a_comparison_with_a_deleted_version(publisher, story, name, number):
    version(story, 2).remove()

    html = page(publisher, name, story, *number).content.decode()

    links = re.findall(r'href="(/agents/[^"]*/compare\?[^"]*)"', html)
    assert [publisher.get(unescape(link)).status_code for link in links] == [200] * len(links)
    assert "from=2" not in html


def test_the_base_of_a_change_may_be_deleted(publisher, story):
    version(story, 2).remove()

    text = page_words(page(publisher, "list", story))

    assert "Based on v2, which was deleted." in text
    assert "Compared with v2" not in text


def test_without_pruned_versions_there_is_no_hint(publisher, story):
    assert "pruned" not in page_words(page(publisher, "list", story))


def test_short_periods_have_links_with_their_durations(publisher, story):
    first, second, third = story.activations.order_by("pk")
    start = first.created_at - timedelta(days=10)
    Activation.objects.filter(pk=first.pk).update(created_at=start)
    Activation.objects.filter(pk=second.pk).update(created_at=start + timedelta(milliseconds=5))
    Activation.objects.filter(pk=third.pk).update(created_at=start + timedelta(milliseconds=9))

    text = page(publisher, "list", story)

    assert "Short: v1 for under 1 s, v2 for under 1 s Characters" in page_words(text)
    assert f'<a href="/agents/{story.pk}/versions/1">v1</a> for under 1 s' in text.content.decode()


def test_charts_have_text_alternatives(publisher, story):
    text = page(publisher, "list", story).content.decode()

    assert "Live versions over time: v1 on" in text
    assert "v3 live since" in text
    assert "Characters in the instructions: from v1, 29 to v3, 36." in text
    assert "Stored versions per week: 0 11 weeks ago" in text
    assert "3 this week." in text


@pytest.mark.parametrize("count", [3, 30])
def test_the_number_of_queries_is_constant(publisher, story, django_assert_max_num_queries, count):
    for number in range(count):
        edit(story, description=str(number), agents=[f"agent-{number}"])

    with django_assert_max_num_queries(12):
        page(publisher, "list", story)
    with django_assert_max_num_queries(7):
        page(publisher, "recent", story)
    with django_assert_max_num_queries(10):
        page(publisher, "live_history", story)
    with django_assert_max_num_queries(10):
        page(publisher, "view", story, 3)


def test_the_recent_versions_reload_after_a_save(publisher, story):
    text = page(publisher, "recent", story).content.decode()

    assert text.startswith('<section id="versions"') or '<section id="versions"' in text[:200]
    assert "agent-saved from:body" in text
    assert "<html" not in text


def test_texts_are_escaped(publisher, story):
    edit(
        story,
        name=HOSTILE[:190],
        description=HOSTILE,
        instructions=HOSTILE,
        tools=[HOSTILE],
        memory=HOSTILE,
        metadata={HOSTILE: HOSTILE},
    )
    act(publisher, "describe", story, 4, name=HOSTILE[:100], change_message=HOSTILE)
    act(publisher, "activate", story, 1, message=HOSTILE)

    for name, more, query in (
        ("list", [], {}),
        ("list", [], {"author": HOSTILE, "since": HOSTILE}),
        ("recent", [], {}),
        ("view", [4], {}),
        ("compare", [], {"from": "3", "to": "4"}),
        ("compare", [], {"from": "3", "to": "4", "layout": "unified", "unfold": HOSTILE}),
        ("live_history", [], {}),
        ("activate", [4], {}),
        ("restore", [4], {}),
        ("describe", [4], {}),
        ("delete", [4], {}),
        ("duplicate", [4], {}),
    ):
        text = page(publisher, name, story, *more, **query).content.decode()
        assert "<script>alert" not in text, name
        assert "<img" not in text, name


def test_naming_a_version_changes_nothing_else(editor, story):
    before = version(story, 2)

    act(editor, "describe", story, 2, name="Warm words", change_message="As agreed", pinned="on")

    after = version(story, 2)
    assert (after.name, after.change_message, after.pinned) == ("Warm words", "As agreed", True)
    assert after.snapshot_text == before.snapshot_text
    assert AgentVersion.objects.count() == 3


def test_naming_a_version_does_not_undo_what_others_described_meanwhile(editor, story):
    opened = form_data(page(editor, "describe", story, 2).content.decode())
    version(story, 2).update_description(pinned=True)
    opened["name"] = "Warm words"
    address = reverse("versions:describe", args=[story.pk, 2])

    refused = editor.post(address, opened)

    assert refused.status_code == 422
    assert "Save again to replace what they entered" in refused.content.decode()
    assert (version(story, 2).name, version(story, 2).pinned) == ("", True)
    assert editor.post(address, form_data(refused.content.decode())).status_code == 302
    assert (version(story, 2).name, version(story, 2).pinned) == ("Warm words", False)


def test_a_description_that_is_sent_twice_is_saved(editor, story):
    sent = form_data(page(editor, "describe", story, 2).content.decode())
    sent["name"] = "Warm words"

    answers = [editor.post(reverse("versions:describe", args=[story.pk, 2]), sent) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 302]


@pytest.mark.parametrize("text", [" v 1 ", "one\ntwo", "one\rtwo", "one\r\ntwo", "\none"])
def test_a_description_that_is_saved_unchanged_stays_as_it_is(editor, story, text):
    version(story, 2).update_description(name=text, change_message=text)

    answer = editor.post(
        reverse("versions:describe", args=[story.pk, 2]),
        form_data(page(editor, "describe", story, 2).content.decode()),
    )

    assert answer.status_code == 302
    assert (version(story, 2).name, version(story, 2).change_message) == (text, text)


def test_a_too_long_name_is_an_error_at_its_field(editor, story):
    response = act(editor, "describe", story, 2, name="x" * 101)

    assert response.status_code == 422
    assert "at most 100 characters" in response.content.decode()


def test_a_version_page_shows_all_fields_and_its_neighbours(viewer, story):
    text = page_words(page(viewer, "view", story, 2))

    assert "Greet guests warmly." in text
    assert "v1" in text
    assert "v3" in text
    assert "Compare with live" in text
    assert "Changes since v1 Instructions +1 −1" in text
    assert "Not set Description, Variables, Tools" in text


def test_a_version_is_one_card_with_the_change_open_and_first(viewer, story):
    version(story, 2).update_description(change_message="As agreed")

    html = page(viewer, "view", story, 2).content.decode()

    card = html[html.index("<article") : html.index("</article>")]
    assert html.count("<article") == 1
    assert '<details class="version-change" id="changed" open>' in card
    order = ["Changes since v1", "<dt>Message</dt>", "<dt>Author</dt>", "<dt>Model</dt>", 'id="part-instructions"']
    assert [card.index(text) for text in order] == sorted(card.index(text) for text in order)
    assert "As agreed" in card


def test_a_downloaded_version_equals_the_api_response(viewer, story):
    response = page(viewer, "download", story, 2)

    body = response.json()
    assert response.headers["Content-Disposition"] == f'attachment; filename="{story.pk}-v2.json"'
    assert body["snapshot"]["instructions"] == "Greet guests warmly.\nAnswer briefly."
    assert body["versionNumber"] == 2
    assert body["isActive"] is False


def test_the_page_of_a_version_shows_its_context_keys(publisher, story):
    edit(story, context_keys=["tier", "seats"])

    assert "Context keys tier, seats" in page_words(page(publisher, "view", story, 4))
