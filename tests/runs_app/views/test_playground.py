"""The playground: columns, messages, conversations and errors."""

import json
import uuid

import pytest
from django.http import QueryDict
from django.urls import reverse

from agents_app.models import Agent
from agents_app.registry import Kind, registry
from memory_app.models import Thread
from runs_app.models import AgentRun, ModelProvider
from runs_app.resolution import stored_agents
from tests.factories import AgentFactory, member
from tests.history_pages import edit
from tests.page_client import browser, editor_form
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text


def address(agent, name="playground"):
    return reverse(f"runs:{name}", args=[agent.pk])


def labels(answer):
    return [column.label for column in answer.context["columns"]]


def ask(client, agent, *choices, message="Hello", runs=(), htmx=False, **more):
    sent = {"message": message, "column": choices or ["live"], "run": runs or [""] * len(choices or [1]), **more}
    return client.post(address(agent, "run"), sent, headers={"HX-Request": "true"} if htmx else {})


def unsaved(agent, **changed):
    """Return the unsaved form of the editor as the playground sends it, with its base version."""
    form = QueryDict(mutable=True)
    for name, value in editor_form(agent, **changed).items():
        form.setlist(name, value if isinstance(value, list) else [value])
    del form["head"], form["live"]
    return {"unsaved": form.urlencode(), "unsaved_base": str(agent.head_version.version_number)}


# --- which columns


def test_live_and_draft_are_the_default_columns(editor, agent):
    assert labels(editor.get(address(agent))) == ["live (v2)", "draft (v3)"]
    assert labels(editor.get(address(AgentFactory()))) == ["live (v1)"]


def test_the_url_names_up_to_three_columns(editor, agent):
    assert labels(editor.get(f"{address(agent)}?columns=v1,live")) == ["v1", "live (v2)"]
    assert labels(editor.get(f"{address(agent)}?columns=v1,v2,v3,live")) == ["v1", "v2", "v3"]


@pytest.mark.parametrize("columns", ["", "nonsense", "v0", "v-1", "v99999999999", "v²", "<b>,;"])
def test_invalid_columns_are_omitted(editor, agent, columns):
    assert labels(editor.get(address(agent), {"columns": columns})) == ["live (v2)", "draft (v3)"]


def test_a_deleted_version_is_reported_and_the_others_run(editor, agent):
    answer = editor.get(f"{address(agent)}?columns=v99,live")

    assert "v99 does not exist or was deleted." in page_text(answer)
    assert answer.context["reasons"] == []


def test_adding_and_removing_columns_keeps_the_message(editor, agent):
    sent = {"column": ["live"], "run": [""], "message": "Half a thou"}

    added = editor.post(address(agent, "arrange"), {**sent, "act": "add"})
    more = editor.post(address(agent, "arrange"), {**sent, "column": ["live", "draft"], "run": ["", ""], "act": "add"})
    less = editor.post(
        address(agent, "arrange"), {**sent, "column": ["live", "draft"], "run": ["", ""], "act": "drop-1"}
    )

    assert [labels(answer) for answer in (added, more, less)] == [
        ["live (v2)", "draft (v3)"],
        ["live (v2)", "draft (v3)", "v1"],
        ["draft (v3)"],
    ]
    assert "Half a thou" in added.content.decode()


@pytest.mark.parametrize(
    ("columns", "label", "can_add"),
    [
        (["live"], "draft (v2)", True),
        (["live", "draft"], "unsaved text", False),
        (["draft", "v1"], "unsaved text", False),
    ],
)
def test_an_added_column_repeats_no_other(editor, columns, label, can_add):
    agent = AgentFactory()
    edit(agent, publish=False, name="Draft")
    sent = {"column": columns, "run": [""] * len(columns), "act": "add"}

    added = editor.post(address(agent, "arrange"), sent)

    assert labels(added)[-1] == label
    assert added.context["can_add"] is can_add


def test_no_column_is_offered_for_an_agent_without_another_version(editor):
    added = editor.post(address(AgentFactory(), "arrange"), {"column": ["live"], "run": [""], "act": "add"})

    assert labels(added) == ["live (v1)", "unsaved text"]
    assert "Compare with another version" not in added.content.decode()


def test_the_last_column_cannot_be_removed(editor, agent):
    sent = {"column": ["live"], "run": [""], "act": "drop-1"}

    assert labels(editor.post(address(agent, "arrange"), sent)) == ["live (v2)"]


# --- asking


def test_every_column_runs_its_own_version_with_the_same_message(editor, ann, agent):
    answer = ask(editor, agent, "live", "draft", "v1", message="Who are you?")

    runs = list(AgentRun.objects.order_by("created_at"))
    assert answer.headers["Location"] == (
        f"{address(agent)}?columns=live,draft,v1&runs={','.join(str(run.pk) for run in runs)}"
    )
    assert [(run.target, run.version_number) for run in runs] == [("live", 2), ("draft", 3), ("version", 1)]
    assert [run.configuration["instructions"] for run in runs] == [
        "Greet guests warmly.",
        "Greet guests by name.",
        "Greet guests.\nAnswer briefly.",
    ]
    assert {run.requested_by for run in runs} == {ann}
    assert {run.input["messages"][0]["content"][0]["text"] for run in runs} == {"Who are you?"}


def test_the_next_page_shows_each_run_with_a_link(editor, agent):
    text = page_text(editor.get(ask(editor, agent, "live", "v1").headers["Location"]))

    assert text.count("Still running. Refresh to see more.") == 2


def test_htmx_gets_the_columns_and_their_url(editor, agent):
    answer = ask(editor, agent, "v1", htmx=True)

    run = AgentRun.objects.get()
    assert answer.headers["HX-Replace-Url"] == f"{address(agent)}?columns=v1&runs={run.pk}"
    assert f'data-stream="{reverse("runs:stream", args=[run.pk])}"' in answer.content.decode()
    assert "<html" not in answer.content.decode()


@pytest.mark.parametrize("message", ["", "  \r\n "])
def test_no_run_starts_without_a_message(editor, agent, message):
    answer = ask(editor, agent, message=message)

    assert answer.status_code == 422
    assert "Enter a message." in page_text(answer)
    assert not AgentRun.objects.exists()


def test_a_too_long_message_is_refused_with_the_limit(editor, agent, settings):
    settings.RUN_MAX_INPUT = 1024

    answer = ask(editor, agent, message="a" * 2000)

    assert answer.status_code == 422
    assert "A message must not exceed 1 KB." in page_text(answer)


def test_too_many_runs_are_an_error_in_their_column(editor, agent, settings):
    settings.RUNS_PER_USER = 1

    answer = ask(editor, agent, "live", "v1", htmx=True)

    assert AgentRun.objects.count() == 1
    assert "Not started. You have reached the limit of 1 unfinished run." in page_text(answer)


def test_line_ends_are_normalized(editor, agent):
    ask(editor, agent, message="One\r\nTwo")

    assert AgentRun.objects.get().input["messages"][0]["content"][0]["text"] == "One\nTwo"


# --- the text that is not saved yet


def test_unsaved_text_runs_on_top_of_the_head(editor, agent):
    ask(editor, agent, "unsaved", **unsaved(agent, instructions="Be brief."))

    run = AgentRun.objects.get()
    assert (run.target, run.version_number) == ("unsaved", None)
    assert run.configuration["instructions"] == "Be brief."
    assert run.configuration["name"] == "Concierge"
    assert agent.versions.count() == 3


def test_unsaved_text_includes_newer_saves_of_others(editor, agent):
    sent = unsaved(agent, instructions="Be brief.")
    Agent.objects.get(pk=agent.pk).edit({"description": "Saved meanwhile."})

    ask(editor, agent, "unsaved", **sent)

    configuration = AgentRun.objects.get().configuration
    assert (configuration["instructions"], configuration["description"]) == ("Be brief.", "Saved meanwhile.")


def test_the_unsaved_column_is_empty_without_unsaved_text(editor, agent):
    answer = editor.get(f"{address(agent)}?columns=unsaved")

    assert "This browser has no unsaved text of the agent." in page_text(answer)
    ask(editor, agent, "unsaved")
    assert not AgentRun.objects.exists()


def test_invalid_unsaved_text_names_the_field(editor, agent):
    answer = ask(editor, agent, "unsaved", htmx=True, **unsaved(agent, metadata="{nonsense"))

    assert "The unsaved text cannot run. Metadata:" in page_text(answer)
    assert not AgentRun.objects.exists()


@pytest.mark.parametrize("sent", ["nonsense", "a=1&b", "%ff%fe", "head=x&name="])
def test_malformed_unsaved_text_is_an_error_in_its_column(editor, agent, sent):
    answer = ask(editor, agent, "unsaved", htmx=True, unsaved=sent, unsaved_base="x")

    assert answer.status_code == 200
    assert "Cannot run." in page_text(answer)


# --- what cannot run says why


def test_viewers_see_why_they_cannot_run(agent):
    viewer = browser(member("viewer"))

    answer = viewer.get(address(agent))

    assert answer.context["reasons"] == [
        "Running an agent needs the Editor role in Shared. Ask a manager of the team for it."
    ]
    assert "disabled" in answer.content.decode().partition("data-run")[2].partition(">")[0]
    assert ask(viewer, agent).status_code == 403


@pytest.fixture
def agent_without_key(settings):
    """Return an agent whose provider has no key."""
    settings.MODEL_KEYS = {}
    return AgentFactory(model={"provider": "openai", "name": "gpt-6-luna"})


def test_without_a_key_the_demo_model_answers_and_the_setting_is_named(editor, agent_without_key):
    answer = editor.get(address(agent_without_key))

    assert answer.context["reasons"] == []
    assert (
        "The built-in demo model answers here. "
        "OpenAI has no API key. Set OPENAI_API_KEY or add one under Model providers."
    ) in page_text(answer)
    assert "demo/echo Demo model" in page_text(answer)


def test_a_run_of_the_demo_fallback_is_labelled(editor, agent_without_key):
    ask(editor, agent_without_key)

    run = AgentRun.objects.get()
    assert run.configuration == {
        **agent_without_key.active_version.snapshot,
        "model": {"provider": "demo", "name": "echo"},
    }
    assert (run.target, run.version_number) == ("version", 1)
    text = page_text(editor.get(reverse("runs:view", args=[run.pk])))
    assert "It replaced openai/gpt-6-luna, which was not available." in text


def test_without_the_demo_model_nothing_runs(editor, agent_without_key):
    ModelProvider.objects.create(key="demo", title="Demo", is_enabled=False)

    answer = editor.get(address(agent_without_key))

    sentence = "OpenAI has no API key. Set OPENAI_API_KEY or add one under Model providers."
    assert answer.context["reasons"] == [sentence]
    assert f"Cannot run. {sentence}" in page_text(answer)


def test_each_reason_is_listed_once(db):
    agent = AgentFactory(model={"provider": "nobody", "name": "a"})
    agent.edit({"model": {"provider": "somebody", "name": "b"}})

    answer = browser(member("viewer")).get(f"{address(agent)}?columns=v1,v2,live")

    role, first, second = answer.context["reasons"]
    assert role.startswith("Running an agent needs the Editor role")
    assert "'nobody'" in first
    assert "'somebody'" in second


def test_an_unknown_provider_is_reported(editor):
    agent = AgentFactory(model={"provider": "nobody", "name": "a"})

    assert "Unknown model provider &#x27;nobody&#x27;. Choose one in the editor." in page_text(
        editor.get(address(agent))
    )


def test_a_column_that_cannot_run_does_not_affect_others(editor):
    agent = AgentFactory()
    agent.edit({"model": {"provider": "nobody", "name": "a"}})

    ask(editor, agent, "v1", "live")

    assert AgentRun.objects.get().version_number == 1


def test_broken_references_are_warnings(editor):
    agent = AgentFactory(tools=["gone"])

    answer = editor.get(address(agent))

    assert "No tool is registered as &#x27;gone&#x27;. The agent runs without it." in page_text(answer)
    assert answer.context["reasons"] == []


def test_the_demo_model_is_labelled(editor, agent):
    assert "The answer of the built-in demo model appears here." in page_text(editor.get(address(agent)))


# --- what was said before


def test_a_result_names_its_own_version(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, output="The porter.")

    response = editor.get(f"{address(agent)}?columns=v1&runs={run.pk}")

    assert labels(response) == ["v1"]
    assert "v2 demo/echo Demo model The porter." in page_text(response)


def test_runs_of_other_users_and_agents_are_not_shown(editor, ann, agent):
    other = RunFactory(agent=AgentFactory(), requested_by=ann)
    theirs = RunFactory(agent=agent)

    for run_id in (other.pk, theirs.pk, uuid.uuid4(), "nonsense"):
        answer = editor.get(f"{address(agent)}?columns=live&runs={run_id}")
        assert "Good day." not in page_text(answer)
        assert str(run_id) not in answer.content.decode()


def test_the_message_stays_in_the_field(editor, ann, agent):
    run = RunFactory(agent=agent, requested_by=ann, prompt="Who are you?")

    answer = editor.get(f"{address(agent)}?columns=live&runs={run.pk}")

    assert answer.context["form"]["message"].value() == "Who are you?"


# --- conversations


@pytest.fixture
def agent_with_memory():
    return AgentFactory(memory=registry.entries(Kind.MEMORY)[0].key)


def test_an_agent_with_memory_continues_its_thread(editor, ann, agent_with_memory):
    ask(editor, agent_with_memory, message="I am Ann.")
    AgentRun.objects.update(status="succeeded")
    first = AgentRun.objects.get()
    ask(editor, agent_with_memory, message="Who am I?", runs=[first.pk])

    second = AgentRun.objects.order_by("pk").last()
    assert second.thread == first.thread
    text = page_text(editor.get(f"{address(agent_with_memory)}?columns=live&runs={second.pk}"))
    assert text.index("I am Ann.") < text.index("Who am I?")
    assert "Continuing this conversation" in text


def test_a_follow_up_has_to_wait_for_the_answer(editor, agent_with_memory):
    ask(editor, agent_with_memory)

    answer = ask(editor, agent_with_memory, runs=[AgentRun.objects.get().pk], htmx=True)

    assert "Not started. The previous run is still in progress. Wait for it, or stop it." in page_text(answer)
    assert json.loads(answer.headers["HX-Trigger"])["runs-started"]["clear"] is False
    assert AgentRun.objects.count() == 1


def test_a_new_run_cancels_the_one_it_replaces(editor, agent):
    ask(editor, agent, "live", "v1")
    first = AgentRun.objects.order_by("pk").first()

    ask(editor, agent, "live", "v1", runs=[first.pk, ""])

    stopped = AgentRun.objects.exclude(cancel_requested_at=None)
    assert list(stopped) == [first]
    assert AgentRun.objects.count() == 4


def test_a_run_whose_start_is_refused_cancels_none(editor, agent, settings):
    settings.RUNS_PER_USER = 1
    ask(editor, agent)
    running = AgentRun.objects.get()

    answer = ask(editor, agent, runs=[running.pk], htmx=True)

    assert "Not started. You have reached the limit of 1 unfinished run" in page_text(answer)
    assert AgentRun.objects.get(pk=running.pk).cancel_requested_at is None


def test_a_new_run_does_not_cancel_that_of_a_colleague(editor, publisher, agent):
    ask(editor, agent)
    theirs = AgentRun.objects.get()

    ask(publisher, agent, runs=[theirs.pk])

    assert AgentRun.objects.count() == 2
    assert not AgentRun.objects.exclude(cancel_requested_at=None).exists()


def test_an_agent_that_is_deleted_meanwhile_is_not_found(editor, agent, monkeypatch):
    def find_nothing(*args, **kwargs):
        raise Agent.DoesNotExist

    monkeypatch.setattr(stored_agents, "get", find_nothing)

    assert editor.get(address(agent)).status_code == 404


def test_a_new_conversation_can_be_started(editor, agent_with_memory):
    ask(editor, agent_with_memory)
    first = AgentRun.objects.get()

    fresh = editor.post(address(agent_with_memory, "arrange"), {"column": ["live"], "run": [first.pk], "act": "fresh"})
    ask(editor, agent_with_memory)

    assert "Continuing this conversation" not in page_text(fresh)
    assert Thread.objects.count() == 2


def test_an_unregistered_memory_stores_nothing(editor):
    agent = AgentFactory(memory="gone")

    ask(editor, agent)

    assert not Thread.objects.exists()


def test_each_column_has_its_own_conversation(editor, agent_with_memory):
    ask(editor, agent_with_memory, "live", "v1")

    assert len(set(AgentRun.objects.values_list("thread", flat=True))) == 2


def test_an_agent_without_memory_starts_a_new_conversation_each_time(editor, agent):
    ask(editor, agent)
    ask(editor, agent, runs=[AgentRun.objects.get().pk])

    assert not Thread.objects.exists()


def test_continuing_a_conversation_clears_the_field(editor, agent_with_memory, agent):
    events = json.loads(ask(editor, agent_with_memory, htmx=True).headers["HX-Trigger"])
    other = json.loads(ask(editor, agent, htmx=True).headers["HX-Trigger"])

    assert events["runs-started"]["clear"] is True
    assert other["runs-started"]["clear"] is False


# --- the ways here


def test_editor_and_history_link_to_the_playground(editor, agent):
    here = address(agent)
    pages = {
        reverse("agents:edit", args=[agent.pk]): f'href="{here}" data-test="agent-form"',
        reverse("versions:list", args=[agent.pk]): f'href="{here}?columns=live,v1"',
        reverse("versions:view", args=[agent.pk, 1]): f'href="{here}?columns=live,v1"',
        reverse("versions:view", args=[agent.pk, 2]): f'href="{here}?columns=v2"',
        f"{reverse('versions:compare', args=[agent.pk])}?from=1&to=2": f'href="{here}?columns=v1,v2"',
    }

    assert {page for page, link in pages.items() if link not in editor.get(page).content.decode()} == set()


def test_viewers_get_a_link_to_the_playground(agent):
    assert f'href="{address(agent)}"' in browser(member("viewer")).get(f"/agents/{agent.pk}").content.decode()
