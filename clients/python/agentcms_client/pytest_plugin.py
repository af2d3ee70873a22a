"""The pytest plugin: tests that look at an experiment over a dataset.

    @pytest.mark.agent_eval(agent="clerk", dataset="support")
    def test_the_clerk_is_exact(experiment):
        assert experiment.mean("exact") >= 0.8, experiment.worst(5)

The environment variables AGENTCMS_URL and AGENTCMS_API_KEY name the server and the key.
"""

from __future__ import annotations

import pytest

from agentcms_client.client import Client
from agentcms_client.command import environment_fault, read_environment
from agentcms_client.experiments import PAGE_SIZE, dataset_path
from agentcms_client.json_types import JSONObject
from agentcms_client.outcomes import BarMissed, ExperimentFailed, Outcome
from agentcms_client.requests import Call

MARK = "agent_eval"
OUTCOMES = pytest.StashKey[dict[str, Outcome | BarMissed | ExperimentFailed]]()
WIRE_NAMES = {"concurrency": "maxConcurrency"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARK}(agent, dataset, version='live', scorers=None, per_item=False, **options): run an experiment.",
    )
    config.stash[OUTCOMES] = {}


def connect() -> Client:
    """Return a client. Raise UsageError without valid environment variables."""
    url, key = read_environment()
    if fault := environment_fault(url, key):
        raise pytest.UsageError(f"{fault} Tests with agent_eval need both.")
    return Client(url, key, timeout=60)


def read_mark(mark: pytest.Mark) -> JSONObject:
    """Return the options of a mark. Raise UsageError if one is missing."""
    options = dict(mark.kwargs)
    if mark.args or not {"agent", "dataset"} <= options.keys():
        raise pytest.UsageError('Write @pytest.mark.agent_eval(agent="…", dataset="…").')
    return options


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each item of the dataset, if the mark says `per_item`. Raise UsageError without items."""
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None or "experiment" not in metafunc.fixturenames:
        return
    options = read_mark(mark)
    if options.get("per_item"):
        items = find_items(options["dataset"])
        if not items:  # pytest would skip the test, and the run would pass
            raise pytest.UsageError(f"The dataset '{options['dataset']}' has no items. Add an item first.")
        names = [str(item.get("externalId") or item["id"]) for item in items]
        metafunc.parametrize("experiment", [item["id"] for item in items], indirect=True, ids=names)


def find_items(dataset_id: str) -> list[JSONObject]:
    """Return the items of a dataset at its current version."""
    items: list[JSONObject] = []
    with connect() as client:
        has_more = True
        while has_more:
            query = {"page": len(items) // PAGE_SIZE, "perPage": PAGE_SIZE}
            body = client.send(Call("GET", dataset_path(dataset_id, "items"), query))
            items += body["items"]
            has_more = body["pagination"]["hasMore"]
    return items


@pytest.fixture
def experiment(request: pytest.FixtureRequest) -> Outcome:
    """The experiment of the mark, which runs once for all tests with equal marks. Per item, the results of one.

    Raise ItemsFailed if more items failed to run than the mark allows by `max_failed`, which is 0 by default.
    """
    mark = request.node.get_closest_marker(MARK)
    if mark is None:
        raise pytest.UsageError("The fixture experiment needs @pytest.mark.agent_eval.")
    options = read_mark(mark)
    options.pop("per_item", None)
    max_failed = options.pop("max_failed", 0)
    outcome = run_once(request.config, options)
    item_id = getattr(request, "param", None)
    return (outcome if item_id is None else outcome.of_item(item_id)).check_items(max_failed)


def run_once(config: pytest.Config, options: JSONObject) -> Outcome:
    """Return the outcome of an experiment, which runs once. Raise what it raised then."""
    # As text, because options may be lists, which cannot be keys of a dict.
    outcomes, key = config.stash[OUTCOMES], repr(sorted(options.items()))
    if key not in outcomes:
        try:
            outcomes[key] = run_experiment(options)
        except (BarMissed, ExperimentFailed) as error:
            outcomes[key] = error
    outcome = outcomes[key]
    if isinstance(outcome, Exception):
        # Several tests raise the same exception, which would collect the frames of all of them.
        raise outcome.with_traceback(None)
    return outcome


def run_experiment(options: JSONObject) -> Outcome:
    named = {WIRE_NAMES.get(name, name): value for name, value in options.items()}
    dataset_id, agent_id = named.pop("dataset"), named.pop("agent")
    with connect() as client:
        # Any number: tests share the experiment, and each compares the failed items with its own mark.
        return client.experiments.run(dataset_id, agent_id, max_failed=None, **named)
