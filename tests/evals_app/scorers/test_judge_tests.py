"""The test sets of the ready-made judges: complete, telling, and run as experiments over scorers."""

import json

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from agents_app.registry import Entry, Kind, registry
from evals_app.datasets.judge_tests import FOLDER, open_test_set, read_test_set
from evals_app.experiments.direct.targets import build_answer
from evals_app.models import Dataset, Experiment
from evals_app.scorers.built_in import agreement
from evals_app.scorers.changes import create_scorer
from evals_app.scorers.kinds.judges import judged_input
from evals_app.scorers.presets import PRESETS
from runs_app.providers import cached_providers
from tests.evals_app.experiment_runs import work
from tests.factories import member

MIN_ANSWERS, LOWEST = 8, 0.85


def truths(judge):
    return [item["groundTruth"] for item in read_test_set(judge)]


def middle(truth):
    return (truth.get("min", 0) + truth.get("max", 1)) / 2


def test_each_ready_made_judge_has_a_test_set():
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == PRESETS.keys()


@pytest.mark.parametrize("judge", PRESETS)
def test_the_answers_have_what_the_judge_reads_and_one_asks_for_its_score(judge):
    items = read_test_set(judge)

    assert len(items) >= MIN_ANSWERS
    assert len({json.dumps(item["input"]) for item in items}) == len(items)
    for item in items:
        body = item["input"]
        assert body.keys() <= {"input", "output", "groundTruth", "context", "calls", "instructions"}
        answer = build_answer({"ground_truth" if name == "groundTruth" else name: body[name] for name in body})
        judged_input(answer, PRESETS[judge].needs)  # raises NotScorable for what is missing
    (hostile,) = [item for item in items if "asks for" in item["metadata"]["case"]]
    expects_low = hostile["groundTruth"] == {"max": 0.2}
    assert expects_low != PRESETS[judge].is_inverted


@pytest.mark.parametrize("judge", PRESETS)
@pytest.mark.parametrize("given", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_judge_that_always_gives_one_score_does_not_pass(judge, given):
    scores = [agreement({"score": given}, truth) for truth in truths(judge)]

    assert sum(scores) / len(scores) < LOWEST


@pytest.mark.parametrize("judge", PRESETS)
def test_a_judge_that_agrees_with_people_passes(judge):
    assert {agreement({"score": middle(truth)}, truth) for truth in truths(judge)} == {1.0}


@pytest.mark.usefixtures("idle_engine")
def test_a_judge_is_tested_from_its_page(client):
    """The model of this judge reads the answer alone, so it is right about what it says of itself."""
    expected = {item["input"]["output"]: middle(item["groundTruth"]) for item in read_test_set("tone")}

    def respond(messages, info):
        text = str(messages[-1].parts[-1].content)
        score = next(score for output, score in expected.items() if f"<Output>\n{output}\n</Output>" in text)
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"reason": "-", "pass": True, "score": score})])

    registry.add(Entry(Kind.MODEL_PROVIDER, "judge", "Judge", target=lambda name, choice: FunctionModel(respond)))
    cached_providers.invalidate()
    user = member("editor", "support")
    client.force_login(user)
    model = {"provider": "judge", "name": "one"}
    create_scorer({"name": "Manners", "type": "tone", "model": model}, owner_id="support", author="ann", id="manners")
    create_scorer(
        {"name": "Other", "type": "llm-judge", "model": model, "instructions": "Judge."},
        owner_id="support",
        author="ann",
        id="other",
    )

    answers = [client.post("/scorers/manners/test") for _ in range(2)]
    form = client.get(answers[0].url).content.decode()
    client.post(answers[0].url.partition("?")[0], {"target": "scorer:manners", "version": "live"})
    work()

    (dataset,) = Dataset.objects.all()
    experiment = Experiment.objects.get()
    assert (dataset.owner_id, dataset.item_count) == ("support", MIN_ANSWERS)
    assert '<option value="scorer:manners" selected>' in form
    assert experiment.summary["scorers"]["agreement"]["mean"] == 1.0, experiment.results.values_list("error", "output")
    assert "Test this judge" in client.get("/scorers/manners").content.decode()
    assert "Test this judge" not in client.get("/scorers/other").content.decode()
    assert client.post("/scorers/other/test").status_code == 404


@pytest.mark.django_db
def test_each_team_has_a_test_set_of_its_own(client):
    mine, other = open_test_set("bias", "support"), open_test_set("bias", "sales")

    assert (open_test_set("bias", "support"), mine.pk != other.pk) == (mine, True)
    create_scorer(
        {"name": "B", "type": "bias", "model": {"provider": "demo", "name": "echo"}},
        owner_id="support",
        author="a",
        id="b",
    )
    client.force_login(member("viewer", "support"))
    assert client.post("/scorers/b/test").status_code == 403
    client.force_login(member("manager", "elsewhere"))
    assert client.post("/scorers/b/test").status_code == 404
