"""The settings of a scorer in its form: fields that give any stored settings back, and compose new ones."""

import json
from types import SimpleNamespace

import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcms.wire.canonical import canonical
from evals_app.forms.scorer_settings import SettingsInputs
from evals_app.forms.scorers import ScorerForm
from evals_app.models import Scorer
from evals_app.scorers.kinds.checks import CHECKS
from evals_app.scorers.settings import SETTINGS
from tests.agents_app.forms.test_round_trips import objects, texts, values
from tests.conftest import DRILL
from tests.factories import member
from tests.form_submission import form_data

NAMES = sorted({name for shape in SETTINGS.values() for name in shape.model_fields} | {"schema"})
steps = objects("function", "prompt", "outputSchema")
configs = objects(*NAMES) | st.fixed_dictionaries(
    {},
    optional={
        "check": st.sampled_from([*CHECKS]),
        "value": texts,
        "values": st.lists(texts, max_size=3),
        "caseSensitive": st.booleans(),
        "preprocess": steps,
        "generateScore": steps,
        "prepareRun": objects("drop"),
        "maxSteps": values,
    },
)


def rendered(form):
    return render_to_string("evals/_scorer_settings.html", {"field": form["settings"], "view": form.settings_view})


@settings(max_examples=300 if DRILL else 40, deadline=None)
@given(kind=st.sampled_from([*SETTINGS, "tone"]), config=configs)
def test_unchanged_settings_come_back(kind, config):
    head = SimpleNamespace(snapshot={"name": "A", "type": kind, "presetConfig": config})
    row = SimpleNamespace(head=head, head_id=1)

    data = form_data(rendered(ScorerForm(row=row)))
    data["type"] = kind
    sent = ScorerForm(data, row=row)

    sent.is_valid()
    assert "settings" not in sent.errors
    assert canonical(sent.cleaned_data["settings"]) == canonical(config)


@pytest.fixture
def editor(client):
    client.force_login(member("editor", "support"))
    return client


@pytest.mark.django_db
def test_a_check_is_created_without_json(editor):
    fields = {"name": "Calls", "owner_id": "support", "type": "check", "settings-view": "fields", "settings": ""}
    prefix = "settings-check-settings"
    check = {f"{prefix}-check": '"called-tool"', f"{prefix}-times": "twice"}

    refused = editor.post("/new-scorer", fields | check)
    lacking = editor.post("/new-scorer", fields | check | {f"{prefix}-times": "2"})
    created = editor.post("/new-scorer", fields | check | {f"{prefix}-times": "2", f"{prefix}-tool": "refund"})

    assert refused.status_code == lacking.status_code == 422
    assert "Number of calls: This must be a number, such as 0.7." in refused.content.decode()
    assert 'name="settings-check-settings-times" value="twice"' in refused.content.decode()
    assert "Name of the tool: The check &#x27;called-tool&#x27; needs this." in lacking.content.decode()
    assert created.status_code == 302
    config = Scorer.objects.get().head.snapshot["presetConfig"]
    assert config == {"check": "called-tool", "times": 2, "tool": "refund"}


@pytest.mark.django_db
def test_the_settings_can_be_saved_as_json(editor):
    fields = {"name": "Refunds", "owner_id": "support", "type": "check", "settings-view": ["fields", "json"]}
    fields |= {"settings": '{"check": "includes", "value": 7}', "settings-check-settings-check": '"equals"'}

    assert editor.post("/new-scorer", fields).status_code == 302

    assert Scorer.objects.get().head.snapshot["presetConfig"] == {"check": "includes", "value": 7}


@pytest.mark.django_db
def test_a_fault_of_a_setting_stands_at_its_input(editor):
    fields = {"name": "Calls", "owner_id": "support", "type": "pipeline", "settings-view": "fields", "settings": ""}
    steps = {"settings-pipeline-generateScore-function": "score", "settings-pipeline-generateScore-prompt": "Score."}
    check = {"settings-check-settings-check": '"no-tool-errors"', "settings-check-settings-times": "1.5"}

    of_step = editor.post("/new-scorer", fields | {**steps, "settings-pipeline-prepareRun-drop": "nothing"})
    of_check = editor.post("/new-scorer", fields | {"type": "check"} | check)

    assert 'aria-describedby="settings-pipeline-prepareRun-drop_error"' in of_step.content.decode()
    assert "Score: Name either a function or a prompt." in of_step.content.decode()
    assert 'aria-describedby="settings-check-settings-times_error"' in of_check.content.decode()
    assert not Scorer.objects.exists()


def sent_answer(*properties, view="fields"):
    """Return the inputs of a judge whose answer has these properties: name, type, required and description."""
    names = ("name", "type", "required", "description")
    rows = {f"output_schema-row-{name}": [texts[index] for texts in properties] for index, name in enumerate(names)}
    rows |= {"output_schema-row-default": [""] * len(properties), "output_schema-view": view}
    fields = {"name": "Tone", "owner_id": "support", "type": "llm-judge", "instructions": "Judge the tone."}
    model = {"model_provider": "demo", "model_name": "echo", "output_schema-typed": "yes", "output_schema": "{}"}
    return {**fields, **model, **rows}


@pytest.mark.django_db
def test_the_answer_of_a_judge_is_declared_without_json(editor):
    score, mood = ("score", "number", "yes", ""), ("mood", "string", "no", "In one word.")
    page = editor.get("/new-scorer").content.decode()

    refused = editor.post("/new-scorer", sent_answer(mood, ("", "", "no", "")))
    twice = editor.post("/new-scorer", sent_answer(score, score))
    created = editor.post("/new-scorer", sent_answer(score, mood, ("", "", "no", "")))

    assert page.count('name="output_schema-row-name"') == 3
    assert "Add a property `score` of type number." in refused.content.decode()
    assert 'value="mood"' in refused.content.decode()
    assert "“score” is declared twice. Remove one of them." in twice.content.decode()
    assert created.status_code == 302
    assert Scorer.objects.get().head.snapshot["outputSchema"] == {
        "type": "object",
        "properties": {"score": {"type": "number"}, "mood": {"type": "string", "description": "In one word."}},
        "required": ["score"],
    }


@pytest.mark.django_db
@pytest.mark.parametrize("extra", [{}, {"minimum": 0}])
def test_a_stored_answer_comes_back_unchanged(editor, extra):
    schema = {"type": "object", "properties": {"score": {"type": "number", **extra}}}
    created = editor.post("/new-scorer", sent_answer(view="json") | {"output_schema": json.dumps(schema)})
    assert created.status_code == 302
    scorer = Scorer.objects.get()

    page = editor.get(f"/scorers/{scorer.pk}/edit").content.decode()
    data = form_data(page)
    data["name"] = "Mood"
    assert editor.post(f"/scorers/{scorer.pk}/edit", dict(data.lists())).status_code == 302

    scorer.refresh_from_db()
    assert (scorer.head.snapshot["name"], scorer.head.snapshot["outputSchema"]) == ("Mood", schema)
    assert ("can only be edited as JSON" in page) == bool(extra)


def test_a_missing_setting_is_named_by_its_label():
    check = SettingsInputs.describe("check", {})
    pipeline = SettingsInputs.describe("pipeline", {})

    assert check.input_error("settings", "check", "This is required.").message == "Check: This is required."
    prompt = pipeline.input_error("settings", "generateScore.prompt", "This is required.")
    assert str(prompt.message) == "Score Prompt: This is required."
    assert check.input_error("settings", "unknown", "This is required.") is None
