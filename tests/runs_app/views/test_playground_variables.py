"""Variables of an agent in the playground, in saved inputs and on the page of a run."""

import json

import pytest
from django.urls import reverse

from runs_app.models import AgentRun, SavedInput
from tests.factories import AgentFactory
from tests.runs_app.factories import RunFactory
from tests.runs_app.views.conftest import page_text

SCHEMA = {
    "properties": {
        "tone": {"enum": ["calm", "loud"], "default": "calm", "description": "How to write."},
        "guest": {"type": "object"},
        "nights": {"type": "integer"},
    },
    "required": ["nights"],
}


@pytest.fixture
def agent(db):
    return AgentFactory(
        instructions="{{tone}} {{guest.name}} {{nights}} {{city || 'Bonn'}} {{user.name}}",
        request_context_schema=SCHEMA,
    )


def address(agent, name="playground"):
    return reverse(f"runs:{name}", args=[agent.pk])


def post(client, agent, name="run", htmx=True, **sent):
    data = {"message": "Hello", "column": ["live"], "run": [""], **sent}
    return client.post(address(agent, name), data, headers={"HX-Request": "true"} if htmx else {})


def values(answer):
    return {field.label: field.value() for field in answer.context["variables"]}


def test_each_variable_has_a_field_and_required_ones_are_first(editor, agent):
    answer = editor.get(address(agent))

    fields = {field.label: field for field in answer.context["variables"]}
    assert [*fields] == ["nights", "guest", "tone", "city", "user.name"]
    assert [field.field.required for field in fields.values()] == [True, False, False, False, False]
    assert fields["city"].field.widget.attrs["placeholder"] == "Bonn"
    text = page_text(answer)
    assert "Variables nights guest optional tone optional Default: calm calm loud How to write. city optional" in text


def test_the_number_of_fields_is_limited(editor):
    agent = AgentFactory(instructions=" ".join(f"{{{{v{number}}}}}" for number in range(103)))

    answer = editor.get(address(agent))

    assert len(answer.context["variables"].fields) == 100
    assert "The instructions have 3 more variables. Only the API can fill them." in page_text(answer)


def test_an_agent_without_variables_has_no_fields(editor):
    answer = editor.get(address(AgentFactory()))

    assert '<fieldset class="variables" id="variables" hidden>' in answer.content.decode()


def test_values_are_sent_with_their_types(editor, agent):
    post(
        editor, agent, **{"variable-nights": "3", "variable-guest": '{"name": "Ann"}', "variable-user.name": "1\r\n2"}
    )

    run = AgentRun.objects.get()
    assert run.request_context == {"nights": 3, "guest": {"name": "Ann"}, "user.name": "1\n2"}
    assert run.filled_instructions == "calm Ann 3 Bonn 1\n2"


def test_a_missing_required_value_is_an_error_at_its_field(editor, agent):
    answer = post(editor, agent, message="", **{"variable-guest": "Ann", "variable-tone": "shrill"})

    assert (answer.status_code, AgentRun.objects.count()) == (422, 0)
    text = page_text(answer)
    assert "Enter a value for nights." in text
    assert "This must be of the type object." in text
    assert "shrill is not one of the available choices" in text
    assert "Enter a message." in text


def test_without_javascript_the_values_and_errors_are_shown(editor, agent):
    answer = post(editor, agent, htmx=False, **{"variable-city": "Ulm"})

    assert answer.status_code == 422
    assert "Enter a value for nights." in page_text(answer)
    assert values(answer)["city"] == "Ulm"


def test_errors_are_removed_by_the_next_run(editor, agent):
    answer = post(editor, agent, **{"variable-nights": "3"})

    assert 'id="id_variable-nights_error" hx-swap-oob="true" hidden' in answer.content.decode()
    assert 'id="variables"' not in answer.content.decode()  # the fields stay: somebody may be typing


def test_other_columns_bring_their_variables_and_keep_the_values(editor, agent):
    agent.edit({"instructions": "{{city}} {{street}}", "request_context_schema": None})

    answer = post(editor, agent, "arrange", act="add", **{"variable-city": "Ulm"})

    assert 'id="variables" hx-swap-oob="true"' in answer.content.decode()
    assert values(answer) == {
        "nights": None,
        "city": "Ulm",
        "street": None,
        "guest": None,
        "tone": None,
        "user.name": None,
    }


def test_after_a_reload_the_values_of_the_run_are_in_the_fields(editor, ann, agent):
    messages = [{"role": "user", "content": "Hi"}]
    run = RunFactory(
        agent=agent, requested_by=ann, input={"messages": messages, "requestContext": {"nights": 3, "guest": {"a": 1}}}
    )

    answer = editor.get(f"{address(agent)}?columns=live&runs={run.pk}")

    assert (values(answer)["nights"], values(answer)["guest"]) == ("3", '{"a": 1}')


def test_values_that_are_too_long_are_an_error(editor, agent):
    answer = post(editor, agent, **{"variable-nights": "3", "variable-city": "x" * 70_000})

    assert "Not started. This must not exceed 64 KB." in page_text(answer)
    assert not AgentRun.objects.exists()


# --- saved inputs


def test_a_saved_input_keeps_its_variables(editor, agent):
    post(editor, agent, "save_input", input_name="Ulm", **{"variable-nights": "3", "variable-city": "Ulm"})

    saved = SavedInput.objects.get()
    answer = editor.get(address(agent), {"input": saved.pk})
    assert saved.variables == {"nights": "3", "city": "Ulm"}
    assert (values(answer)["nights"], values(answer)["city"], values(answer)["tone"]) == ("3", "Ulm", None)
    assert "{&quot;city&quot;: &quot;Ulm&quot;, &quot;nights&quot;: &quot;3&quot;}" in answer.content.decode()


@pytest.mark.parametrize("sent", [{"variable-city": "x" * 70_000}, {"variable-city": "\0"}, {"variable-%00": "a"}])
def test_values_that_a_run_would_refuse_are_not_saved(editor, agent, sent):
    answer = post(editor, agent, "save_input", input_name="Ulm", **sent)

    assert json.loads(answer.headers["HX-Trigger"])["inputs-changed"]["message"].startswith("Variables: ")
    assert not SavedInput.objects.exists()


@pytest.fixture
def asked_run(ann, agent):
    messages = [{"role": "user", "content": "  Where is\nmy suitcase? "}]
    return RunFactory(agent=agent, requested_by=ann, input={"messages": messages, "requestContext": {"nights": 3}})


def test_a_question_already_asked_can_be_saved(editor, agent, asked_run):
    page = editor.get(f"{address(agent)}?columns=live&runs={asked_run.pk}").content.decode()

    answer = post(editor, agent, "save_input", message="Something else", asked=asked_run.pk, input_name="")

    assert f'name="asked" value="{asked_run.pk}"' in page
    saved = SavedInput.objects.get()
    assert (saved.name, saved.text) == ("Where is my suitcase?", "  Where is\nmy suitcase? ")
    assert saved.variables == {"nights": "3"}
    message = json.loads(answer.headers["HX-Trigger"])["inputs-changed"]["message"]
    assert message == "Input Where is my suitcase? saved."


def test_an_empty_message_saves_the_last_question(editor, agent, asked_run):
    post(editor, agent, "save_input", message="", run=[asked_run.pk], input_name="Suitcase")

    assert SavedInput.objects.values_list("name", "text").get() == ("Suitcase", "  Where is\nmy suitcase? ")


def test_questions_with_the_same_beginning_have_names_of_their_own(editor, ann, agent):
    for end in ("one", "two", "one"):
        prompt = f"{'word ' * 20}{end}"
        post(editor, agent, "save_input", asked=RunFactory(agent=agent, requested_by=ann, prompt=prompt).pk)

    names = list(SavedInput.objects.values_list("name", flat=True))
    assert (len(names), names[1]) == (2, f"{names[0]} (2)")


def test_questions_of_others_cannot_be_saved(editor, agent):
    post(editor, agent, "save_input", message="Mine", asked=RunFactory(agent=agent).pk, input_name="A")

    assert SavedInput.objects.get().text == "Mine"


# --- the page of a run


def test_the_run_page_shows_the_values_and_the_instructions(editor, ann, agent):
    run = RunFactory(
        agent=agent,
        requested_by=ann,
        input={
            "messages": [],
            "requestContext": {"nights": 3, "<b>": "<i>"},
            "instructions": "calm Ann 3 Bonn",
        },
    )

    answer = editor.get(reverse("runs:view", args=[run.pk]))

    text = page_text(answer)
    assert "Variables &lt;b&gt; &lt;i&gt; nights 3" in text
    assert "Instructions with these values calm Ann 3 Bonn" in text
    assert "{{tone}} {{guest.name}}" in text


def test_a_run_without_values_has_no_such_sections(editor, ann):
    run = RunFactory(agent=AgentFactory(), requested_by=ann)

    text = page_text(editor.get(reverse("runs:view", args=[run.pk])))

    assert "Variables" not in text.partition("Agent at the time")[0]
    assert "Instructions with these values" not in text


def test_a_failed_run_does_not_say_that_the_agent_answered(editor, ann, agent):
    warnings = [
        {"field": "tools", "key": "gone", "message": "No tool is registered as 'gone'."},
        {"field": "instructions", "key": "a", "message": "The variable a has no value."},
    ]
    run = RunFactory(agent=agent, requested_by=ann, status="failed", error="Broken.", output="", warnings=warnings)

    text = page_text(editor.get(reverse("runs:answer", args=[run.pk])))

    assert "No tool is registered as &#x27;gone&#x27;. The agent ran without it." in text
    assert "The variable a has no value. " in text
    assert "answered" not in text
