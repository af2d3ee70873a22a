"""Pages of stored scorers: create, change, delete, try on a run, history, comparison and restore."""

import re

import pytest
from django.db import connections

from agentcms.errors import Conflict, NotFound
from evals_app.experiments.ending import mark_cancelled
from evals_app.models import ReleaseGate, Scorer
from evals_app.scorers import changes
from evals_app.scorers.changes import create_scorer
from evals_app.scorers.results import ScoreResult
from evals_app.views import scorers as views
from runs_app.events.streams import StreamSlot
from tests.evals_app.experiment_runs import make_dataset, new_experiment
from tests.factories import AgentFactory, member
from tests.form_submission import form_data
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

INCLUDES = {"name": "Mentions refunds", "type": "check", "settings": '{"check": "includes", "value": "refund"}'}


@pytest.fixture
def publisher(client):
    user = member("publisher", "support")
    client.force_login(user)
    return user


@pytest.fixture
def refunds():
    snapshot = {"name": "Refunds", "type": "check", "presetConfig": {"check": "includes", "value": "refund"}}
    return create_scorer(snapshot, owner_id="support", author="ann", id="refunds")


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def facts(page):
    return re.findall(r"<dt>([^<]*)</dt><dd [^>]*>([^<]*)</dd>", page)


def test_the_configuration_has_the_labels_of_the_form(client, publisher, refunds):
    assert facts(text(client.get("/scorers/refunds"))) == [
        ("Name", "Refunds"),
        ("Type", "Check: a fixed rule"),
        ("Check", "Includes a text"),
        ("Expected text", "refund"),
    ]


def test_built_in_scorers_are_described_to_readers_of_the_page(client, publisher):
    page = text(client.get("/scorers"))

    assert "1 for an answer that contains the ground truth, else 0." in page
    assert "Return " not in page


@pytest.mark.parametrize("search", ["FUNDS", "MENTIONS"])
def test_a_scorer_is_found_by_its_id_and_its_name(client, publisher, refunds, search):
    changes.change_scorer("refunds", {"name": "Mentions refunds"}, author="ann", publish=False)

    matching, none = (text(client.get("/scorers", {"q": words})) for words in (search, "length"))

    assert 'href="/scorers/refunds"' in matching
    assert "No matching scorers" in none


def test_settings_of_steps_and_what_has_no_input_are_shown_too(client, publisher):
    scores = {"min": None, "max": 5}  # clients write null for a limit that they do not have
    judge = {"name": "Judge", "type": "tone", "scoreRange": scores, "model": {"provider": "openai", "name": "x"}}
    create_scorer(judge, owner_id="support", author="ann", id="judge")
    steps = {"generateScore": {"prompt": "Rate it."}, "prepareRun": {"drop": ["input", "calls"]}}
    pipeline = {"name": "Steps", "type": "pipeline", "model": judge["model"], "presetConfig": steps}
    create_scorer(pipeline, owner_id="support", author="ann", id="steps")

    assert ("Scores", "0 to 5") in facts(text(client.get("/scorers/judge")))
    assert facts(text(client.get("/scorers/steps")))[2:] == [
        ("Model", "openai · x"),
        ("Score: Prompt", "Rate it."),
        ("Preparation: Fields to drop", "input\ncalls"),
    ]


@pytest.mark.parametrize(
    ("error", "heading"), [(NotFound("It was deleted."), "Page not found"), (Conflict("In use."), "not possible now")]
)
def test_the_page_of_what_somebody_changed_meanwhile_says_so(client, publisher, refunds, monkeypatch, error, heading):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(changes, "activate_version", fail)
    client.raise_request_exception = False

    assert heading in text(client.post("/scorers/refunds/versions/1/publish"), error.status)


def test_creating_a_scorer_needs_a_role(client):
    client.force_login(member("viewer", "support"))

    assert "This needs the Editor role" in text(client.get("/new-scorer"), 403)


def test_a_scorer_is_created_changed_compared_and_restored(client, publisher):
    created = client.post("/new-scorer", INCLUDES | {"owner_id": "support", "publish": "yes"})
    path = created.url
    other = INCLUDES | {"settings": '{"check": "includes", "value": "money"}', "change_message": "Wider"}
    client.post(f"{path}/edit", other)
    row = Scorer.objects.get()

    page = text(client.get(path))
    assert (path, row.live.version_number, row.head.version_number) == ("/scorers/mentions-refunds", 1, 2)
    assert row.head.snapshot["presetConfig"]["value"] == "money"
    assert re.findall(r"(Live v1|Draft v2)</span>", page) == ["Live v1", "Draft v2"]  # not by colours only
    assert "First version" in page
    assert "Settings · <bdi>Wider</bdi>" in page
    compared = text(client.get(f"{path}/compare?from=1&to=2"))
    assert "refund" in compared
    assert "money" in compared
    assert "presetConfig" not in page + compared  # the API's name of the settings
    client.post(f"{path}/versions/2/publish")
    client.post(f"{path}/versions/1/restore")
    row.refresh_from_db()
    assert (row.live.version_number, row.live.snapshot["presetConfig"]["value"]) == (3, "refund")
    listed = text(client.get("/scorers"))
    assert "Mentions refunds" in listed
    assert '<td data-label="Type">Check: a fixed rule</td>' in listed


def test_a_publication_from_the_history_is_undone(client, publisher, refunds):
    client.post("/scorers/refunds/edit", INCLUDES | {"settings": '{"check": "includes", "value": "money"}'})

    for action, live, undo in (("2/publish", 2, 1), ("1/restore", 3, 2), ("1/publish", 1, 3), ("1/publish", 1, None)):
        page = text(client.post(f"/scorers/refunds/versions/{action}", follow=True))
        refunds.refresh_from_db()
        assert refunds.live.version_number == live
        toast = re.search(r'hx-post="/scorers/refunds/versions/(\d)/publish"', page)
        assert (toast and int(toast[1])) == undo


def test_an_editor_discards_a_draft(client, refunds):
    client.force_login(member("editor", "support"))
    assert "Discard draft" not in text(client.get("/scorers/refunds"))
    client.post("/scorers/refunds/edit", INCLUDES | {"settings": '{"check": "includes", "value": "money"}'})
    assert "Discard draft" in text(client.get("/scorers/refunds"))

    pages = [text(client.post("/scorers/refunds/discard-draft", follow=True)) for _ in range(2)]

    refunds.refresh_from_db()
    assert (refunds.head.version_number, refunds.live.version_number, refunds.versions.count()) == (1, 1, 2)
    assert ["Draft v2 discarded." in pages[0], "There is no draft to discard." in pages[1]] == [True, True]


def test_an_undo_leads_to_what_was_live_under_the_lock(client, publisher, refunds, monkeypatch):
    """Somebody else publishes while this request waits for the lock."""
    for word in ("money", "cash"):
        client.post("/scorers/refunds/edit", INCLUDES | {"settings": f'{{"check": "includes", "value": "{word}"}}'})
    lock_scorer, others = changes.lock_scorer, iter([2])

    def publish_before_lock(scorer_id):
        for number in others:
            Scorer.objects.update(live=refunds.versions.get(version_number=number))
        return lock_scorer(scorer_id)

    monkeypatch.setattr(changes, "lock_scorer", publish_before_lock)
    page = text(client.post("/scorers/refunds/versions/3/publish", follow=True))

    assert 'hx-post="/scorers/refunds/versions/2/publish"' in page


def test_a_scorer_is_deleted_after_a_question_that_names_its_agents(client, publisher, refunds):
    AgentFactory(id="clerk", owner_id="support", scorers={"refunds": {"sampling": {"type": "ratio", "rate": 1}}})
    assert "/scorers/refunds/delete" in text(client.get("/scorers/refunds"))

    question = text(client.get("/scorers/refunds/delete"))
    deleted = client.post("/scorers/refunds/delete", follow=True)

    assert "These agents use it and will run without it: <bdi>&#x27;clerk&#x27;</bdi>." in question
    assert "Refunds was deleted." in text(deleted)
    assert not Scorer.objects.exists()


def test_a_scorer_that_got_the_id_since_the_page_was_read_is_not_deleted(publisher, refunds):
    snapshot = refunds.configuration
    changes.delete_scorer(Scorer.objects.get(pk="refunds"))
    create_scorer(snapshot, owner_id="support", author="bob", id="refunds")

    with pytest.raises(Conflict, match="another one has its ID"):
        changes.delete_scorer(refunds)
    assert Scorer.objects.exists()


def test_the_dialog_of_another_scorer_with_the_id_deletes_nothing(client, publisher, refunds):
    form, snapshot = form_data(text(client.get("/scorers/refunds/delete"))), refunds.configuration
    changes.delete_scorer(Scorer.objects.get(pk="refunds"))
    create_scorer(snapshot, owner_id="support", author="bob", id="refunds")

    refused = text(client.post("/scorers/refunds/delete", form), 409)

    assert "It was deleted in the meantime, and this one was created with its ID." in refused
    assert Scorer.objects.exists()
    assert client.post("/scorers/refunds/delete", form_data(refused)).status_code == 302


def test_a_scorer_of_a_gate_is_not_deleted(client, publisher, refunds):
    agent = AgentFactory(owner_id="support")
    dataset = make_dataset("Hello", owner_id="support")
    ReleaseGate.objects.create(agent=agent, dataset=dataset, scorer="refunds", minimum=0.5)
    ReleaseGate.objects.create(owner_id="support", dataset=dataset, scorer="refunds", minimum=0.5)

    pages = [text(client.get("/scorers/refunds/delete")), text(client.post("/scorers/refunds/delete"), 409)]

    assert all("A release gate uses this scorer. Delete the gate first." in page for page in pages)
    assert all(f'<a href="/agents/{agent.pk}/quality" dir="auto">{agent.name}</a>' in page for page in pages)
    assert all('all agents of <span dir="auto">support</span>' in page for page in pages)
    assert Scorer.objects.exists()


def test_a_scorer_of_an_unfinished_experiment_is_not_deleted(client, publisher, refunds):
    agent = AgentFactory(owner_id="support")
    experiment = new_experiment(make_dataset("Hello", owner_id="support"), publisher, agent, scorerIds=["refunds"])

    pages = [text(client.get("/scorers/refunds/delete")), text(client.post("/scorers/refunds/delete"), 409)]

    message = "An experiment that has not ended uses this scorer. Wait until it ends, or cancel it."
    assert all(message in page for page in pages)
    mark_cancelled(experiment)
    assert client.post("/scorers/refunds/delete").status_code == 302


def test_editors_delete_no_scorer(client, refunds):
    client.force_login(member("editor", "support"))

    assert "/delete" not in text(client.get("/scorers/refunds"))
    assert client.post("/scorers/refunds/delete").status_code == 403
    assert Scorer.objects.exists()


def test_a_new_scorer_has_blank_fields_and_says_which_are_optional(client, publisher):
    page = text(client.get("/new-scorer"))

    assert ">\nnull" not in page
    assert ">Save draft</button>" in page
    without_settings = re.sub(r'<div class="for-settings">.*?Settings as JSON.*?</details>', "", page, flags=re.DOTALL)
    assert without_settings.count('<span class="optional">optional</span>') == 7
    assert '<option value="demo">' in page  # suggestions of providers and their models
    assert '<option value="echo" data-provider="demo">' in page


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"settings": '{"check": "guesses"}'}, "presetConfig.check: Choose one of includes"),
        ({"settings": "{"}, "line 1, column 2"),
        ({"type": "tone", "settings": ""}, "A judge needs a model."),
        ({"lowest": "2"}, "The maximum must be above the minimum."),
        ({"key": "exact"}, "belongs to a scorer in code"),
        ({"owner_id": "elsewhere"}, "You cannot create scorers for this team."),
    ],
)
def test_a_faulty_scorer_is_named_at_its_field_and_not_stored(client, publisher, fields, message):
    page = text(client.post("/new-scorer", INCLUDES | {"owner_id": "support"} | fields), 422)

    assert message in page.replace("&#x27;", "'")
    assert not Scorer.objects.exists()


def test_a_draft_is_tried_on_any_run_that_the_user_may_read(client, publisher, refunds):
    run = RunFactory(agent=AgentFactory(owner_id="support"), owner_id="support", output="You get money.")
    secret = RunFactory(agent=AgentFactory(owner_id="elsewhere"), owner_id="elsewhere")
    client.post("/scorers/refunds/edit", INCLUDES | {"settings": '{"check": "includes", "values": ["money", "back"]}'})

    page = text(client.post("/scorers/refunds/try", {"run": f"http://testserver/runs/{run.pk}"}))

    assert "<b>0.500</b>" in page
    assert "Missing: back." in page
    for key in (secret.pk, "nonsense"):
        assert "This run was not found." in text(client.post("/scorers/refunds/try", {"run": key}))


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_scorer_that_is_tried_holds_no_database_connection(client, publisher, refunds, monkeypatch):
    run = RunFactory(agent=AgentFactory(owner_id="support"), owner_id="support", output="You get money.")
    wrapper, open_connections = connections["default"], []

    async def score(snapshot, answer):
        open_connections.append(wrapper.connection)
        return ScoreResult(1.0)

    monkeypatch.setattr(views, "score_by_snapshot", score)
    page = text(client.post("/scorers/refunds/try", {"run": run.pk}))

    assert "<b>1.000</b>" in page
    assert open_connections == [None]


def test_a_scorer_that_somebody_changed_meanwhile_is_replaced_only_on_purpose(client, publisher, refunds):
    path = "/scorers/refunds/edit"
    opened = seen(text(client.get(path)))
    client.post(path, {**INCLUDES, "name": "Theirs", "seen": opened})

    refused = text(client.post(path, {**INCLUDES, "name": "Mine", "seen": opened}), 422)

    refunds.refresh_from_db()
    assert refunds.head.snapshot["name"] == "Theirs"
    assert "somebody else has changed this" in refused
    assert 'value="Mine"' in refused
    client.post(path, {**INCLUDES, "name": "Mine", "seen": seen(refused)})
    refunds.refresh_from_db()
    assert refunds.head.snapshot["name"] == "Mine"


def test_a_scorer_that_somebody_changes_while_it_is_saved_is_not_replaced(client, publisher, refunds, monkeypatch):
    opened = seen(text(client.get("/scorers/refunds/edit")))
    lock = changes.lock_scorer

    def wait_for_lock(scorer_id):
        monkeypatch.setattr(changes, "lock_scorer", lock)
        changes.change_scorer("refunds", {"name": "Theirs"}, author="tom")
        return lock(scorer_id)

    monkeypatch.setattr(changes, "lock_scorer", wait_for_lock)

    text(client.post("/scorers/refunds/edit", {**INCLUDES, "name": "Mine", "seen": opened}), 422)

    refunds.refresh_from_db()
    assert refunds.head.snapshot["name"] == "Theirs"


def seen(page):
    """Return what the form on a page was rendered with."""
    return page.partition('name="seen" value="')[2].partition('"')[0]


def test_former_members_of_a_team_try_no_scorer_on_their_runs(client, publisher, refunds):
    own = RunFactory(agent=AgentFactory(owner_id="left"), owner_id="left", requested_by=publisher, output="A refund.")

    page = text(client.post("/scorers/refunds/try", {"run": own.pk}))

    assert "This run was not found." in page
    assert "<dt>Score</dt>" not in page


def test_a_judge_without_a_model_is_reported_at_both_fields_in_words(client, publisher):
    fields = {"name": "Manners", "type": "tone", "owner_id": "support"}

    page = text(client.post("/new-scorer", fields), 422)

    assert page.count("A judge needs a model.") == 2
    assert "model.provider" not in page
    assert 'id="id_model_provider-error"' in page or 'id="id_model_provider_error"' in page


def test_the_page_says_that_no_version_is_live_and_an_experiment_can_test_the_draft(client, publisher):
    path = client.post("/new-scorer", INCLUDES | {"name": "Never live", "owner_id": "support"}).url
    dataset = make_dataset("Hello", owner_id="support")

    saved = text(client.post(f"{path}/edit", INCLUDES | {"name": "Says refund"}, follow=True))
    form = text(client.get(f"/datasets/{dataset.pk}/experiments/start?target=scorer:never-live&version=draft"))

    assert "No version is live yet" in saved
    assert "Restore v1" in saved
    assert "Restore v2" not in saved  # the newest version is what a restore would create
    assert '<option value="scorer:never-live" selected>Says refund (never-live)</option>' in form
    assert re.search(r'value="exact"[^>]*>', form)
    assert 'name="scorers" value="never-live"' not in form  # nothing is live that could score


def test_a_judge_with_the_demo_model_gives_a_score(client, publisher):
    run = RunFactory(agent=AgentFactory(owner_id="support"), owner_id="support", output="You get 50 euros.")
    model = {"provider": "demo", "name": "echo", "delay": 0}
    snapshot = {"name": "Manners", "type": "llm-judge", "model": model, "instructions": "Is it polite?"}
    create_scorer(snapshot, owner_id="support", author="ann", id="manners")

    page = text(client.post("/scorers/manners/try", {"run": run.pk}))

    assert "<b>0.000</b>" in page
    assert "I am the demo model, which cannot judge" in page


def test_reading_the_page_of_a_scorer_calls_nothing(client, publisher, refunds):
    run = RunFactory(agent=AgentFactory(owner_id="support"), owner_id="support", output="You get a refund.")

    page = text(client.get(f"/scorers/refunds?run={run.pk}"))

    assert f'value="{run.pk}"' in page
    assert "<dt>Score</dt>" not in page
    assert client.get("/scorers/refunds/try").status_code == 405
    assert "<dt>Score</dt>" in text(client.post("/scorers/refunds/try", {"run": run.pk}))


def test_roles_limit_what_people_do_and_strangers_find_no_scorer(client, refunds):
    client.force_login(member("viewer", "support"))
    assert "Try on a run" not in text(client.get("/scorers/refunds"))
    assert client.post("/scorers/refunds/try", {"run": "x"}).status_code == 403
    assert client.get("/scorers/refunds/edit").status_code == 403
    client.force_login(member("editor", "support"))
    for route in ("versions/1/publish", "versions/1/restore"):
        assert client.post(f"/scorers/refunds/{route}").status_code == 403
    assert client.post("/scorers/refunds/edit", INCLUDES | {"publish": "yes"}).status_code == 403
    client.force_login(member("manager", "elsewhere"))
    for route in ("", "/edit", "/compare?from=1&to=1"):
        assert client.get(f"/scorers/refunds{route}").status_code == 404
    for route in ("versions/1/publish", "try"):
        assert client.post(f"/scorers/refunds/{route}").status_code == 404
    assert "Refunds" not in text(client.get("/scorers"))


def test_a_try_has_the_limits_of_streams(client, publisher, refunds, settings):
    settings.RUN_STREAMS_PER_USER = 1
    run = RunFactory(agent=AgentFactory(owner_id="support"), owner_id="support", output="You get a refund.")

    with StreamSlot(publisher):
        busy = text(client.post("/scorers/refunds/try", {"run": run.pk}))

    assert "limit of 1 open stream of unfinished runs" in busy
    assert "<b>1.000</b>" in text(client.post("/scorers/refunds/try", {"run": run.pk}))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("[" * 50_000 + "]" * 50_000, "JSON must not be nested deeper than 64 levels."),
        ('{"a":' * 3000 + "1" + "}" * 3000, "JSON must not be nested deeper than 64 levels."),
        ('{"a": "\\ud800"}', "a: Text must not contain half of a surrogate pair."),
        ('{"a": 1e999}', "a: A number must be finite and fit a double."),
    ],
)
def test_a_hostile_schema_is_an_error_of_its_field(client, publisher, schema, message):
    client.raise_request_exception = False
    fields = {"type": "llm-judge", "instructions": "Be fair.", "output_schema": schema, "owner_id": "support"}

    page = text(client.post("/new-scorer", INCLUDES | fields), 422)

    assert message in page
    assert not Scorer.objects.exists()


def test_steps_of_a_pipeline_without_settings_are_one_line(client):
    client.force_login(member("editor", "support"))

    page = client.get("/new-scorer").content.decode()

    steps = re.findall(r'<details class="scorer-step"( open)?><summary>(\w+)', page)
    assert steps == [("", "Preprocess"), ("", "Analyze"), (" open", "Score"), ("", "Reason"), ("", "Preparation")]


def test_a_pipeline_without_its_score_is_reported_at_that_step(client, publisher):
    fields = {"name": "Steps", "type": "pipeline", "owner_id": "support", "settings-view": "inputs"}

    page = text(client.post("/new-scorer", fields), 422)

    assert "Score: A pipeline needs this step." in page
    assert "presetConfig" not in page
    assert re.search(r'name="settings-pipeline-generateScore-\w+"[^>]* aria-invalid="true"', page)
