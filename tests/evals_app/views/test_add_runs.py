"""Adding runs to a dataset: from the page of a run, as a dialog, and several from a list."""

import pytest
from django.urls import reverse

from evals_app.datasets.changes import change_item, delete_items
from evals_app.models import Dataset, ItemVersion
from evals_app.views import from_runs
from runs_app.models import RunEvent
from tests.evals_app.experiment_runs import make_dataset
from tests.factories import AgentFactory, MembershipFactory, member
from tests.runs_app.factories import RunFactory

pytestmark = pytest.mark.django_db

SELECTED = "/runs/add-to-dataset"


@pytest.fixture
def editor(client):
    user = member("editor", "support")
    client.force_login(user)
    return user


@pytest.fixture
def runs(editor):
    agent = AgentFactory(owner_id="support")
    return [
        RunFactory(agent=agent, owner_id="support", requested_by=editor, output=output)
        for output in ("Nine.", "[1]\n2", "Ten.")
    ]


def text(answer, status=200):
    assert answer.status_code == status, answer.content.decode()[:500]
    return answer.content.decode()


def test_a_run_is_edited_and_added_with_its_calls(client, runs):
    make_dataset(owner_id="support")
    run = runs[0]
    for number, (kind, fields) in enumerate(
        (("tool-call", {"toolName": "clock", "args": {}}), ("tool-result", {"result": 9})), 900
    ):
        data = {"type": kind, "payload": {"toolCallId": "c", **fields}}
        RunEvent.objects.create(run=run, number=number, data=data)
    path = reverse("evals:add_run", args=[run.pk])

    page = text(client.get(path))
    dialog = text(client.get(path, headers={"HX-Request": "true"}))
    fields = {f"input-{run.pk}": "When?\r\nNow?", f"ground_truth-{run.pk}": "At nine.", f"mocks-{run.pk}": "yes"}
    added = client.post(path, {"dataset": "support", **fields}, headers={"HX-Request": "true"})

    assert "Nine." in page
    assert "Calls of tools: clock" in page
    assert "<dialog" in dialog
    assert added.headers["HX-Redirect"] == "/datasets/support"
    item = ItemVersion.objects.get()
    assert (item.input, item.ground_truth) == ("When?\nNow?", "At nine.")
    assert item.tool_mocks == [{"toolName": "clock", "args": {}, "output": 9}]
    assert item.expected_trajectory is None
    assert item.source == {"type": "trace", "referenceId": str(run.pk)}


def test_selected_runs_are_added_as_one_version(client, runs):
    make_dataset(owner_id="support")
    ids = [str(run.pk) for run in runs[:2]]

    listed = text(client.get("/runs"))
    page = text(client.get(SELECTED, {"run": ids}))
    # Unchanged texts with the line breaks of a browser keep the values of the run.
    sent = {f"ground_truth-{runs[1].pk}": "[1]\r\n2"}
    client.post(SELECTED, {"dataset": "support", "run": ids, **sent})

    assert f'value="{ids[0]}"' in listed
    assert "2 of 2" in page
    dataset = Dataset.objects.get()
    assert (dataset.version, dataset.item_count) == (1, 2)
    assert [item.ground_truth for item in ItemVersion.objects.order_by("item_id")] == ["Nine.", "[1]\n2"]


def test_a_new_dataset_is_created_in_the_team_of_the_run(client, runs):
    path = reverse("evals:add_run", args=[runs[0].pk])

    nothing = text(client.post(path, {}), 422)
    client.post(path, {"new_name": "Hours"})

    assert "Choose a dataset, or enter the name of a new one." in nothing
    assert Dataset.objects.get().owner_id == "support"
    assert ItemVersion.objects.get().ground_truth == "Nine."


def test_a_refused_item_keeps_what_was_typed(client, runs):
    make_dataset(owner_id="support", input_schema={"type": "object"})
    path = reverse("evals:add_run", args=[runs[0].pk])

    page = text(client.post(path, {"dataset": "support", f"input-{runs[0].pk}": "My words"}), 422)

    assert "is not of type" in page
    assert "My words" in page
    assert not ItemVersion.objects.exists()


def test_a_text_that_no_database_stores_is_refused(client, runs):
    make_dataset(owner_id="support")
    path = reverse("evals:add_run", args=[runs[0].pk])

    page = text(client.post(path, {"dataset": "support", f"ground_truth-{runs[0].pk}": "a\0b"}), 422)

    assert "groundTruth: Text must not contain a NUL character." in page
    assert not ItemVersion.objects.exists()


def test_datasets_that_one_may_only_read_take_no_place_of_others(client, editor, runs, monkeypatch):
    monkeypatch.setattr(from_runs, "MAX_DATASETS", 1)
    MembershipFactory(user=editor, owner_id="archive", role="viewer")
    make_dataset(pk="a-first", owner_id="archive")
    make_dataset(owner_id="support")

    page = text(client.get(reverse("evals:add_run", args=[runs[0].pk])))

    assert '<option value="support"' in page
    assert '<option value="a-first"' not in page
    assert "Search datasets" not in page


def test_of_many_datasets_a_search_finds_the_others(client, runs, monkeypatch):
    monkeypatch.setattr(from_runs, "MAX_DATASETS", 1)
    for name in ("alpha", "beta", "of-agent"):
        make_dataset(pk=name, owner_id="support")
        Dataset.objects.filter(pk=name).update(name=name)
    Dataset.objects.filter(pk="of-agent").update(target_ids=[runs[0].agent_key])
    path = reverse("evals:add_run", args=[runs[0].pk])

    pages = [client.get(path, {"q": search}) for search in ("", "BET", "zeta")]

    assert [[key for key, _ in page.context["choices"]] for page in pages] == [["of-agent", "alpha"], ["beta"], []]
    assert [page.context["chosen"] for page in pages] == ["of-agent", "", ""]
    assert "2 of 3 datasets. Search for the others." in text(pages[0])
    assert "No dataset has this in its name" in text(pages[2])


def test_runs_and_datasets_of_others_are_not_there(client, editor, runs):
    make_dataset(pk="secret", owner_id="elsewhere")
    hidden = RunFactory(agent=AgentFactory(owner_id="elsewhere"), owner_id="elsewhere", output="Hidden words")

    assert client.get(reverse("evals:add_run", args=[hidden.pk])).status_code == 404
    assert "Hidden words" not in text(client.get(SELECTED, {"run": [str(hidden.pk), str(runs[0].pk)]}))
    assert client.get(SELECTED, {"run": [str(hidden.pk), "x"]}).status_code == 302
    refused = client.post(reverse("evals:add_run", args=[runs[0].pk]), {"dataset": "secret"})
    assert refused.status_code in (404, 422)
    assert not ItemVersion.objects.exists()


def test_the_dialog_takes_a_constant_number_of_queries(
    client, runs, django_assert_num_queries, django_assert_max_num_queries
):
    make_dataset(pk="first", owner_id="support")
    path = reverse("evals:add_run", args=[runs[0].pk])
    client.get(path)
    with django_assert_max_num_queries(12) as few:
        client.get(path)
    for number in range(10):
        make_dataset(pk=f"more-{number}", owner_id="support")
    with django_assert_num_queries(len(few)):
        client.get(path)


@pytest.mark.parametrize("typed", ["[" * 50_000, '{"a": "\\ud800"}', '{"a": 1e999}'], ids=["deep", "half", "infinite"])
def test_json_that_no_database_stores_stays_the_text_that_was_typed(client, runs, typed):
    make_dataset(owner_id="support")
    client.raise_request_exception = False
    path = reverse("evals:add_run", args=[runs[0].pk])

    added = client.post(path, {"dataset": "support", f"input-{runs[0].pk}": typed}, headers={"HX-Request": "true"})

    assert added.status_code == 200
    assert ItemVersion.objects.get().input == typed


def test_a_new_dataset_is_not_left_behind_without_its_items(client, runs, settings):
    settings.RUN_MAX_INPUT = 100
    run = runs[0]

    refused = client.post(
        reverse("evals:add_run", args=[run.pk]), {"new_name": "Hours", f"input-{run.pk}": "When? " * 100}
    )

    assert refused.status_code == 422
    assert not Dataset.objects.exists()


def test_runs_that_are_there_already_are_not_added_again(client, runs):
    make_dataset(owner_id="support")
    sent = {"dataset": "support", "run": [str(run.pk) for run in runs[:2]]}
    client.post(SELECTED, sent)

    again = client.post(SELECTED, sent, follow=True)
    more = client.post(SELECTED, {**sent, "run": [str(run.pk) for run in runs]}, follow=True)

    assert "Support has 2 items of the same runs already." in text(again)
    assert "1 item added to Support as version 2." in text(more)
    assert Dataset.objects.get().item_count == 3


def test_a_run_whose_item_was_edited_since_is_not_added_again(client, runs):
    dataset = make_dataset(owner_id="support")
    sent = {"dataset": "support", "run": [str(runs[0].pk)]}
    client.post(SELECTED, sent)
    change_item(dataset, ItemVersion.objects.get().item_id, {"ground_truth": "At nine."})

    again = client.post(SELECTED, sent, follow=True)

    assert "Support has 1 item of the same runs already." in text(again)
    assert ItemVersion.objects.current().get().ground_truth == "At nine."


def test_a_run_whose_item_was_deleted_is_added_again(client, runs):
    dataset = make_dataset(owner_id="support")
    sent = {"dataset": "support", "run": [str(runs[0].pk)]}
    client.post(SELECTED, sent)
    delete_items(dataset, [ItemVersion.objects.get().item_id])

    client.post(SELECTED, sent)

    assert ItemVersion.objects.current().get().ground_truth == "Nine."


def test_more_runs_take_no_more_queries(client, runs, django_assert_max_num_queries):
    paths = [f"{SELECTED}?{'&'.join(f'run={run.pk}' for run in some)}" for some in (runs[:1], runs)]

    counts = []
    for path in paths:
        with django_assert_max_num_queries(20) as captured:
            text(client.get(path))
        counts.append(len(captured))

    assert counts[1] == counts[0]
