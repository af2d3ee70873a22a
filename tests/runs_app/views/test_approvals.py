"""The list of calls that wait for people, and decisions on its pages."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents_app.registry import Entry, Kind, registry
from runs_app.display.spans import decision_note
from runs_app.models import PendingCall
from tests.factories import member
from tests.page_client import browser
from tests.runs_app.factories import RefundCallFactory, RunFactory
from tests.runs_app.views.conftest import page_text

INBOX = "/approvals"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def call(ann, agent):
    return RefundCallFactory(run__agent=agent, run__requested_by=ann, run__prompt="Give me my money back")


def decide(client, call, verdict, headers=None, **fields):
    data = {"verdict": verdict, f"call-{call.pk}-mark": call.mark, **{_name(call, key): fields[key] for key in fields}}
    return client.post(reverse("runs:decide", args=[call.pk]), data, headers=headers or {})


def _name(call, key):
    return key if key in ("mode", "next", "show", "place") else f"call-{call.pk}-{key.replace('_', '-')}"


def test_a_waiting_call_is_listed_with_what_a_decision_needs(editor, call):
    text = page_text(editor.get(INBOX))

    assert "Concierge wants to call refund" in text
    assert "started by ann" in text
    assert "Give me my money back" in text
    assert "I refund this order now." in text
    assert "order A-17 amount 120" in text
    assert "expires in 6 days" in text


def test_the_keys_that_save_decide_no_call_that_is_not_in_focus(editor, call):
    """Else they would send an empty answer to the first question of a page."""
    html = editor.get(INBOX).content.decode()
    editing = editor.get(f"/approvals/{call.pk}?mode=edit").content.decode()

    assert "data-save" not in html.partition('class="stack approval-form"')[2].partition(">")[0]
    assert 'data-save="focused"' in editing


def test_the_oldest_call_is_first(editor, call, ann):
    older = RefundCallFactory(run__requested_by=ann, created_at=timezone.now() - timedelta(hours=3))

    html = editor.get(INBOX).content.decode()

    assert html.index(f"approval-{older.pk}") < html.index(f"approval-{call.pk}")


def test_an_empty_list_says_what_will_be_there(editor):
    assert "Nothing waits for your decision" in page_text(editor.get(INBOX))
    assert "Nothing was decided yet" in page_text(editor.get(f"{INBOX}?tab=decided"))


def test_the_header_counts_the_calls_that_the_user_may_decide(editor, viewer, call):
    page, hidden = editor.get("/").content.decode(), viewer.get("/").content.decode()

    assert 'class="bell-count">1</span>' in page
    assert "bell-count" not in hidden


def test_the_header_is_updated_with_one_small_query(editor, call, django_assert_num_queries):
    with django_assert_num_queries(3):  # the session, the user, the count
        response = editor.get("/approvals/count?shown=0", headers=HTMX)

    assert 'class="bell-count">1</span>' in response.content.decode()
    assert editor.get("/approvals/count?shown=1", headers=HTMX).status_code == 204


def test_the_number_of_queries_does_not_grow_with_the_calls(editor, call, ann, django_assert_max_num_queries):
    RefundCallFactory.create_batch(4, run__requested_by=ann)

    with django_assert_max_num_queries(12):
        editor.get(INBOX)


def test_opening_a_call_that_was_decided_meanwhile_updates_the_numbers(editor, call):
    path = f"/approvals/{call.pk}?mode=edit"

    waiting = editor.get(path, headers=HTMX)
    decide(editor, call, "approve")
    decided = editor.get(path, headers=HTMX)

    assert "HX-Trigger" not in waiting.headers
    assert "approval-decided" in decided.headers["HX-Trigger"]
    assert "HX-Trigger" not in editor.get(path).headers


def test_approving_stores_who_decided(editor, ann, call):
    response = decide(editor, call, "approve", HTMX)

    call.refresh_from_db()
    assert (call.state, call.decided_by, call.via) == ("approved", ann, "page")
    assert "approval-decided" in response.headers["HX-Trigger"]
    assert "Approved by ann" in page_text(response)


def test_without_scripts_the_page_from_which_it_was_sent_follows(editor, call):
    response = decide(editor, call, "approve", next="/runs")

    assert (response.status_code, response.headers["Location"]) == (302, "/runs")
    assert "approved. The run continues." in page_text(editor.get("/runs"))


def test_without_scripts_the_same_page_follows_after_an_error(editor, call):
    sent = {"mode": "edit", "data_order": "A-17", "data_view": "fields", "next": "/approvals?agent=a"}

    wrong = decide(editor, call, "approve", data_amount="a lot", **sent)

    assert wrong.status_code == 422
    assert '<input type="hidden" name="next" value="/approvals?agent=a">' in wrong.content.decode()


def test_the_message_has_the_whole_title_while_other_calls_wait(editor, call):
    registry.add(Entry(Kind.TOOL, "refund", "Refund, e.g. of a parcel"))
    RefundCallFactory(run=call.run, call_id="call-2")

    decide(editor, call, "approve", next="/runs")

    expected = "Refund, e.g. of a parcel: approved. The run continues when its other calls are decided."
    assert expected in page_text(editor.get("/runs"))


@pytest.mark.parametrize("page", ["https://example.org/", "//example.org/", "[]", "agents:list"])
def test_nothing_but_a_page_of_this_site_follows(editor, call, page):
    assert decide(editor, call, "approve", next=page).headers["Location"] == INBOX


def test_declining_asks_for_a_reason(editor, call):
    form = editor.get(f"/approvals/{call.pk}?mode=decline").content.decode()
    response = decide(editor, call, "decline", HTMX, reason="Not without a receipt.")

    call.refresh_from_db()
    assert f'name="call-{call.pk}-reason"' in form
    assert (call.state, call.reason) == ("declined", "Not without a receipt.")
    assert "Not without a receipt." in page_text(response)


def test_arguments_are_edited_in_fields(editor, call):
    form = editor.get(f"/approvals/{call.pk}?mode=edit").content.decode()
    decide(editor, call, "approve", HTMX, mode="edit", data_order="A-17", data_amount="20.5", data_view="fields")

    call.refresh_from_db()
    assert f'name="call-{call.pk}-data-amount" value="120"' in form
    assert call.edited_arguments == {"order": "A-17", "amount": 20.5}


def test_a_number_in_place_of_yes_is_shown_as_an_edit(editor, call):
    PendingCall.objects.update(arguments={"express": True, "copies": 1}, arguments_schema=None)

    decide(editor, call, "approve", HTMX, mode="edit", data='{"express": 1, "copies": 1.0}')

    html = editor.get(f"/approvals/{call.pk}").content.decode()
    assert '<del class="approval-previous">yes</del> <ins>1</ins>' in html
    assert html.count("<del") == 1


def test_arguments_that_were_all_removed_are_shown_as_an_edit(editor, call):
    PendingCall.objects.update(arguments_schema=None)

    answer = decide(editor, call, "approve", HTMX, mode="edit", data="{}")

    call.refresh_from_db()
    assert "The arguments were edited." in page_text(answer)
    assert decision_note(call) == "Approved by ann with edited arguments"
    assert "Approved edited" in page_text(editor.get(f"{INBOX}?tab=decided"))


def test_unchanged_fields_are_no_edit(editor, call):
    decide(editor, call, "approve", HTMX, mode="edit", data_order="A-17", data_amount="120", data_view="fields")

    call.refresh_from_db()
    assert (call.state, call.edited_arguments) == ("approved", None)


def test_arguments_that_do_not_fit_stay_in_the_form_with_an_error(editor, call):
    sent = {"mode": "edit", "data_order": "A-17", "data_view": "fields"}

    wrong = decide(editor, call, "approve", HTMX, data_amount="a lot", **sent)
    missing = decide(editor, call, "approve", HTMX, data_amount="", **sent)

    assert (wrong.status_code, missing.status_code) == (422, 422)
    assert "Amount: This must be a number" in page_text(wrong)
    assert "a lot" in wrong.content.decode()
    assert f'name="call-{call.pk}-data-amount" value="" autocomplete="off" inputmode="decimal" aria-invalid' in (
        missing.content.decode()
    )
    assert "Amount: This is required." in page_text(missing)
    assert "arguments." not in page_text(missing)
    assert PendingCall.objects.get().is_open


def test_json_that_does_not_fit_has_its_errors_below_it(editor, call):
    sent = {"mode": "edit", "data": '{"order": "A-17", "amount": "a lot"}'}

    wrong = decide(editor, call, "approve", HTMX, **sent)

    assert wrong.status_code == 422
    assert "<li>amount: " in wrong.content.decode()


def test_arguments_can_be_edited_as_json(editor, call):
    page = decide(editor, call, "", HTMX, mode="edit", show="data:json", data_order="A-17", data_amount="7")
    decide(editor, call, "approve", HTMX, mode="edit", data='{"order": "B-2", "amount": 1}')

    call.refresh_from_db()
    assert "&quot;amount&quot;: 7" in page.content.decode()
    assert call.edited_arguments == {"order": "B-2", "amount": 1}


def test_a_schema_without_inputs_is_edited_as_json(editor, call):
    PendingCall.objects.update(arguments_schema=None, arguments=["one", 2])

    html = editor.get(f"/approvals/{call.pk}?mode=edit").content.decode()

    assert "This value can only be edited as JSON." in html


def test_a_question_is_answered_in_fields(editor, call):
    schema = {"type": "object", "properties": {"date": {"type": "string", "title": "Day"}}, "required": ["date"]}
    PendingCall.objects.update(kind="suspend", resume_schema=schema, payload={"question": "Which day?"})
    page = page_text(editor.get(INBOX))

    missing = decide(editor, call, "resume", HTMX, data_date="", data_view="fields")
    decide(editor, call, "resume", HTMX, data_date="Monday", data_view="fields")

    call.refresh_from_db()
    assert "Which day?" in page
    assert "Day" in page
    assert "Day: This is required." in page_text(missing)
    assert f"/approvals/{call.pk}?mode=decline" in missing.content.decode()
    assert (call.state, call.resume_data) == ("resumed", {"date": "Monday"})


def test_a_question_may_expect_a_single_value(editor, call):
    PendingCall.objects.update(kind="suspend", resume_schema={"type": "boolean", "title": "Go on?"})

    decide(editor, call, "resume", HTMX, data_value="true", data_view="fields")

    call.refresh_from_db()
    assert call.resume_data is True


def test_a_second_person_reads_who_was_faster(publisher, editor, call):
    decide(editor, call, "approve")

    response = decide(publisher, call, "decline", HTMX)

    assert response.status_code == 409
    assert "ann was faster and chose: approved. Your decision was not used." in page_text(response)
    assert PendingCall.objects.get().state == "approved"


def test_who_decides_again_on_a_second_page_reads_the_own_decision(editor, call):
    decide(editor, call, "approve")

    answer = decide(editor, call, "decline", HTMX)

    assert answer.status_code == 409
    assert "You decided this call before: approved. Your second decision was not used." in page_text(answer)


def test_other_arguments_than_those_on_the_page_are_not_approved(editor, call):
    stale = PendingCall.objects.get()
    PendingCall.objects.update(mark="mark-2", arguments={"order": "A-17", "amount": 9999})

    response = decide(editor, stale, "approve", HTMX)

    assert response.status_code == 409
    assert "are not those that you saw" in page_text(response)
    assert "9999" in page_text(response)
    assert PendingCall.objects.get().is_open


def test_an_expired_call_is_not_decided(editor, call):
    PendingCall.objects.update(expires_at=timezone.now() - timedelta(minutes=1))

    response = decide(editor, call, "approve", HTMX)

    assert response.status_code == 409
    assert "This call has expired" in page_text(response)


def test_readers_without_the_role_see_who_may_decide(call):
    reader = member("viewer")
    PendingCall.objects.update(requested_by=reader)

    page = browser(reader).get(f"{INBOX}?tab=others")
    response = decide(browser(reader), call, "approve")

    assert "This needs the Editor role in Shared." in page_text(page)
    assert 'value="approve"' not in page.content.decode()
    assert response.status_code == 403
    assert PendingCall.objects.get().is_open


def test_whoever_started_the_run_may_need_a_second_person(editor, call):
    PendingCall.objects.update(four_eyes=True)

    assert "Somebody else has to decide, because you started this run." in page_text(editor.get(f"{INBOX}?tab=others"))


def test_strangers_find_nothing(call):
    for stranger in (member("publisher", "elsewhere"), member("editor")):
        client = browser(stranger)

        assert f"approval-{call.pk}" not in client.get(INBOX).content.decode()
        assert client.get(f"/approvals/{call.pk}").status_code == 404
        assert decide(client, call, "approve").status_code == 404


def test_former_members_do_not_read_arguments(call, ann, editor):
    ann.memberships.all().delete()

    assert editor.get(f"/approvals/{call.pk}").status_code == 404
    assert "A-17" not in editor.get(f"{INBOX}?tab=others").content.decode()


def test_decided_calls_can_be_filtered(editor, call, ann):
    other = RefundCallFactory(run__requested_by=ann, tool="book", arguments={"day": "Monday"})
    decide(editor, call, "approve")
    decide(editor, other, "decline", reason="No")

    everything = page_text(editor.get(f"{INBOX}?tab=decided"))
    declined = page_text(editor.get(f"{INBOX}?tab=decided&state=declined&by=me"))
    of_agent = page_text(editor.get(f"{INBOX}?tab=decided&agent={call.agent_key}"))

    assert "order: A-17" in everything
    assert "day: Monday" in everything
    assert "order: A-17" not in declined
    assert "day: Monday" in declined
    assert "day: Monday" not in of_agent


def test_the_list_of_decided_calls_reads_no_events(editor, call):
    def reads_events(query):
        with CaptureQueriesContext(connection) as queries:
            text = page_text(editor.get(f"{INBOX}{query}"))
        assert "A-17" in text
        return any("runs_app_runevent" in query["sql"] for query in queries)

    before = reads_events("")
    decide(editor, call, "approve")

    assert (before, reads_events("?tab=decided")) == (True, False)


def test_a_decision_outlives_its_run(editor, call, ann):
    decide(editor, call, "approve")
    call.run.delete()

    assert "Approved by ann" in page_text(editor.get(f"/approvals/{call.pk}"))


def test_hostile_texts_are_escaped(editor, call):
    evil = "<script>alert(1)</script>"
    PendingCall.objects.update(arguments={evil: evil, "n": {evil: [evil]}}, tool=evil, payload={evil: evil})

    for path in (INBOX, f"/approvals/{call.pk}?mode=edit", f"/approvals/{call.pk}?mode=decline"):
        assert evil not in editor.get(path).content.decode()


@pytest.mark.parametrize("query", ["tab=x", "tab=decided&state=x&by=y&page=9", "agent=%00", "page=-1"])
def test_unknown_parameters_are_ignored(editor, call, query):
    assert editor.get(f"{INBOX}?{query}").status_code == 200


@pytest.mark.parametrize("verdict", ["", "perhaps", None])
def test_a_form_without_a_decision_says_what_is_missing(editor, call, verdict):
    data = {} if verdict is None else {"verdict": verdict}
    answer = editor.post(reverse("runs:decide", args=[call.pk]), data, headers=HTMX)

    assert answer.status_code == 422
    assert "Nothing was decided. Press one of the buttons below." in page_text(answer)
    assert RunFactory._meta.model.objects.get(pk=call.run_id).status == "suspended"
