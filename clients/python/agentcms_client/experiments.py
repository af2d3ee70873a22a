"""Experiments: a version of an agent over the items of a dataset, with bars for CI.

The steps of an experiment are written once, as a generator of requests and pauses. Each client carries them out.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import httpx

from agentcms_client.json_types import JSONMapping, JSONObject, JSONValue
from agentcms_client.outcomes import ExperimentFailed, Outcome, worse_scorers
from agentcms_client.requests import Call, joined_path
from agentcms_client.responses import ApiError
from agentcms_client.retries import is_transient

if TYPE_CHECKING:
    from agentcms_client.async_client import AsyncClient
    from agentcms_client.client import Client

UNFINISHED_STATUSES = ("pending", "running")
POLL_SECONDS = 0.5
SECONDS_TO_CANCEL = 30.0
MAX_OUTAGE = 300.0  # seconds, as for the command of the server
CANCEL_PAUSES = (0.5, 1.0, 2.0, 2.0)  # seconds in which a server finishes the request that starts an experiment
PAGE_SIZE = 100
COMPLETED = "completed"

Pause = float  # seconds
Progress = Callable[[JSONObject], None]


@dataclass
class Request:
    """An experiment that is to run, and what it must reach.

    Args:
        dataset_id: The ID of the dataset.
        agent_id: The ID of the agent, or of another target with the field `targetType`.
        version: `live`, `draft`, or the number or ID of a version.
        scorers: The keys of scorers. By default those of the items and the dataset.
        fail_under: The lowest mean that passes, by scorer. Of one that is better the lower it scores, the highest.
        not_worse_than: A version that runs too. Each scorer is compared with it.
        margin: How much worse than that version passes.
        max_cost: Stop above this many dollars.
        max_failed: How many items may fail to run. None allows any number.
        timeout: Seconds after which the experiment is cancelled.
        on_progress: Called with the experiment, as the API returns it, after each read.
        fields: Further members of the API, such as `repeats` and `maxConcurrency`.
    """

    dataset_id: str
    agent_id: str
    version: str = "live"
    scorers: Sequence[str] | None = None
    fail_under: Mapping[str, float] | None = None
    not_worse_than: str | None = None
    margin: float = 0.0
    max_cost: float | None = None
    max_failed: int | None = 0
    timeout: float = 3600.0  # seconds
    on_progress: Progress | None = None
    fields: JSONMapping = field(default_factory=dict)

    def start_call(self, version: str, experiment_id: str) -> Call:
        """Return the request that starts the experiment over a version, with this ID."""
        body: JSONObject = {"targetType": "agent", "targetId": self.agent_id, "agentVersion": version}
        body |= {} if self.scorers is None else {"scorerIds": [*self.scorers]}
        body |= {} if self.max_cost is None else {"budget": {"maxCost": self.max_cost}}
        body |= {"bars": dict(self.fail_under)} if self.fail_under else {}
        # The ID comes last: `fields` may have that of the candidate, and its baseline has another one.
        body = {**body, **self.fields, "id": experiment_id}
        # A misspelled option, such as that of a bar, is an error: an experiment without the bar would pass.
        return Call("POST", dataset_path(self.dataset_id, "experiments"), {"strict": True}, body)


OPTIONS = {option.name for option in fields(Request)} - {"dataset_id", "agent_id", "fields"}


def dataset_path(dataset_id: str, *rest: str) -> str:
    return f"/api/datasets/{joined_path(dataset_id, *rest)}"


def experiment_path(started: JSONMapping, *rest: str) -> str:
    return dataset_path(started["datasetId"], "experiments", started["id"], *rest)


def cancel_call(experiment_id: str) -> Call:
    return Call("POST", f"/api/experiments/{joined_path(experiment_id)}/cancel", body={})


def compare_call(baseline: JSONMapping, candidate: JSONMapping) -> Call:
    body = {"experimentIdA": baseline["id"], "experimentIdB": candidate["id"]}
    return Call("POST", dataset_path(candidate["datasetId"], "compare"), body=body)


Steps = Generator[Call | Pause, Any, Any]  # receives the answer to each request


def run_steps(request: Request) -> Generator[Call | Pause, Any, Outcome]:
    """Run an experiment, and that of its baseline. Return the outcome. Raise BarMissed and ExperimentFailed."""
    yield from check_baseline_steps(request)
    experiment_id = str(request.fields.get("id") or uuid.uuid4())
    outcome = yield from experiment_steps(request, request.version, experiment_id)
    outcome.shortfalls = outcome.missed(request.fail_under or {})
    if request.not_worse_than is not None and outcome.status == COMPLETED:
        baseline = yield from experiment_steps(request, request.not_worse_than, str(uuid.uuid4()))
        if baseline.status != COMPLETED:
            outcome.check(request.max_failed)  # a missed bar is known even so
            message = f"The baseline did not run to its end. {baseline.stop_reason}"
            raise ExperimentFailed(message, outcome, baseline.status)
        statistics = yield from compare_steps(baseline.experiment, outcome.experiment, request.timeout)
        outcome.shortfalls += worse_scorers(statistics, request.margin)
    return outcome.check(request.max_failed)


def check_baseline_steps(request: Request) -> Generator[Call | Pause, Any, None]:
    """Read the version of an agent that is the baseline. Raise ApiError if it does not exist, before anything runs."""
    version = request.not_worse_than
    if version in (None, "", "live", "draft") or request.fields.get("targetType", "agent") != "agent":
        return
    number = version.removeprefix("v")
    query = {"versionNumber": number} if number.isdecimal() else {"versionId": version}
    yield Call("GET", f"/api/stored/agents/{joined_path(request.agent_id)}", query)


def experiment_steps(request: Request, version: str, experiment_id: str) -> Generator[Call | Pause, Any, Outcome]:
    """Run an experiment over a version to its end. Cancel it after the timeout, or if the caller is interrupted.

    The ID is that of the experiment, so that it can be cancelled before the server has answered.
    """
    try:
        started = yield request.start_call(version, experiment_id)
        experiment = yield from wait_steps(started, request)
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        yield from cancel_steps(experiment_id)
        raise
    is_late = experiment["status"] in UNFINISHED_STATUSES
    if is_late:
        yield cancel_call(experiment_id)
        experiment = yield from wait_steps(started, Request("", "", timeout=SECONDS_TO_CANCEL))
    outcome = Outcome(experiment, (yield from results_steps(experiment)))
    if is_late:
        message = f"The experiment took longer than {request.timeout:g} seconds. It was cancelled."
        raise ExperimentFailed(message, outcome)
    return outcome


def cancel_steps(experiment_id: str) -> Generator[Call | Pause, Any, None]:
    """Cancel an experiment after an interruption, which may have come before the server has created it."""
    for pause in CANCEL_PAUSES:
        try:
            yield cancel_call(experiment_id)
            return
        except ApiError as error:
            if error.status != 404:
                return  # the interruption is what the caller wants to know of
        except httpx.HTTPError:
            return
        yield pause


def wait_steps(started: JSONObject, request: Request) -> Generator[Call | Pause, Any, JSONObject]:
    """Wait for the end of an experiment, at most for the timeout. Return it.

    It goes on while the server cannot be reached, for example because it is restarted. Raise after MAX_OUTAGE.
    """
    end, experiment, seen_at = time.monotonic() + request.timeout, started, time.monotonic()
    while True:
        if request.on_progress is not None:
            request.on_progress(experiment)
        if experiment["status"] not in UNFINISHED_STATUSES or time.monotonic() > end:
            return experiment
        yield POLL_SECONDS
        try:
            experiment = yield Call("GET", experiment_path(started))
            seen_at = time.monotonic()
        except (ApiError, httpx.TransportError) as error:
            if not is_transient(error) or time.monotonic() - seen_at > MAX_OUTAGE:
                raise


def results_steps(experiment: JSONMapping) -> Generator[Call | Pause, Any, list[JSONObject]]:
    """Return the results of an experiment, which are read page by page."""
    results: list[JSONObject] = []
    page, has_more = 0, True
    while has_more:
        query = {"page": page, "perPage": PAGE_SIZE}
        body = yield Call("GET", experiment_path(experiment, "results"), query)
        results += body["results"]
        page, has_more = page + 1, body["pagination"]["hasMore"]
    return results


def compare_steps(
    baseline: JSONMapping, candidate: JSONMapping, timeout: float
) -> Generator[Call | Pause, Any, JSONObject]:
    """Return the statistics of two experiments. Raise ExperimentFailed if the server does not compute them in time."""
    end = time.monotonic() + timeout
    while True:
        answer = yield compare_call(baseline, candidate)  # a new request each time: the same one is answered once
        if answer["statistics"] is not None:
            statistics: JSONObject = answer["statistics"]
            return statistics
        if answer["state"] == "failed":
            raise ExperimentFailed(
                "The server could not compare the experiments. Its log has the reason.", status="failed"
            )
        if time.monotonic() > end:
            raise ExperimentFailed(f"The comparison with the baseline took longer than {timeout:g} seconds.")
        yield POLL_SECONDS


class Experiments:
    """Experiments of the synchronous client: `client.experiments`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def run(self, dataset_id: str, agent_id: str, **options: JSONValue) -> Outcome:
        """Run an experiment to its end and return its results.

        Args:
            dataset_id: The ID of the dataset.
            agent_id: The ID of the agent, or of another target with `targetType`.
            options: Those of `Request` by name: `version`, `scorers`, `fail_under`, `not_worse_than` and others.
                Further members of the API too, such as `repeats` and `maxConcurrency`.

        Raise BarMissed, ItemsFailed, ExperimentFailed and ApiError.
        """
        outcome: Outcome = self.carry_out(run_steps(build_request(dataset_id, agent_id, **options)))
        return outcome

    def results(self, experiment: JSONMapping) -> list[JSONObject]:
        """Return the results of an experiment."""
        results: list[JSONObject] = self.carry_out(results_steps(experiment))
        return results

    def carry_out(self, steps: Steps) -> Any:
        """Send the requests of steps and wait for their pauses. Return what the steps return."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = self.carry_out_one(step)
                except BaseException as error:  # an interruption too: the steps then cancel the experiment
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value

    def carry_out_one(self, step: Call | Pause) -> Any:
        if isinstance(step, Call):
            return self.client.send(step)
        time.sleep(step)
        return None


class AsyncExperiments:
    """Experiments of the asynchronous client: `client.experiments`."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def run(self, dataset_id: str, agent_id: str, **options: JSONValue) -> Outcome:
        """Run an experiment to its end, as `Experiments.run` does."""
        outcome: Outcome = await self.carry_out(run_steps(build_request(dataset_id, agent_id, **options)))
        return outcome

    async def results(self, experiment: JSONMapping) -> list[JSONObject]:
        """Return the results of an experiment."""
        results: list[JSONObject] = await self.carry_out(results_steps(experiment))
        return results

    async def carry_out(self, steps: Steps) -> Any:
        """Send the requests of steps and wait for their pauses. Return what the steps return."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await (self.client.send(step) if isinstance(step, Call) else asyncio.sleep(step))
                except BaseException as error:  # a cancellation too: the steps then cancel the experiment
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value


def build_request(dataset_id: str, agent_id: str, **options: JSONValue) -> Request:
    """Return an experiment with the options of `Request`. Other options are members of its body."""
    known = {name: options.pop(name) for name in OPTIONS if name in options}
    return Request(dataset_id, agent_id, fields=options, **known)
