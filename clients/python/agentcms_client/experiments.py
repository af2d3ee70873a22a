"""Experiments: a version of an agent over the items of a dataset, with bars for CI."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentcms_client.requests import Call

if TYPE_CHECKING:
    from agentcms_client.clients import AsyncClient, Client

UNFINISHED_STATUSES = ("pending", "running")
POLL_SECONDS = 0.5
PAGE_SIZE = 100


class BarMissed(AssertionError):
    """A scorer is below its bar. The message names the worst items."""


class ExperimentFailed(Exception):
    """The experiment was cancelled, its budget is spent, or it could not run."""


@dataclass
class Outcome:
    """An experiment that has ended, with its results as the API returns them."""

    experiment: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The results of items that failed to run."""
        return [result for result in self.results if result["error"]]

    def scores(self, scorer: str) -> list[float]:
        """Return the scores of a scorer, without answers that it could not score."""
        return [score for result in self.results if (score := score_of(result, scorer)) is not None]

    def mean(self, scorer: str) -> float:
        """Return the mean of a scorer. Raise LookupError if it has scored no answer."""
        scores = self.scores(scorer)
        if not scores:
            raise LookupError(f"'{scorer}' has scored no answer.")
        return sum(scores) / len(scores)

    def worst(self, count: int, scorer: str | None = None) -> list[str]:
        """Return the worst items in words: those that failed, then those with the lowest score."""
        ordered = sorted(self.results, key=lambda result: (not result["error"], lowest_score(result, scorer)))
        return [describe_result(result, scorer) for result in ordered[:count]]

    def missed(self, bars: Mapping[str, float]) -> list[str]:
        """Return a sentence for each scorer whose mean is below its bar."""
        sentences = []
        for scorer, bar in bars.items():
            scores = self.scores(scorer)
            if not scores:
                sentences.append(f"'{scorer}' has no score. The bar is {bar:g}.")
            elif (mean := sum(scores) / len(scores)) < bar:
                sentences.append(f"'{scorer}' scored {mean:.3f}. The bar is {bar:g}.")
        return sentences

    def of_item(self, item_id: str) -> Outcome:
        """Return the same experiment with the results of one item."""
        return replace(self, results=[result for result in self.results if result["itemId"] == item_id])

    def check(self, fail_under: Mapping[str, float] | None) -> Outcome:
        """Return the outcome. Raise ExperimentFailed if it did not run to its end, and BarMissed."""
        if self.experiment["status"] != "completed":
            raise ExperimentFailed(self.experiment.get("stopReason") or "The experiment did not run to its end.")
        if sentences := self.missed(fail_under or {}):
            raise BarMissed("\n".join([*sentences, "The worst items:", *self.worst(5)]))
        return self


def score_of(result: Mapping[str, Any], scorer: str) -> float | None:
    """Return the score of a scorer in a result, or None without one."""
    return next((entry["score"] for entry in result["scores"] if entry["scorerId"] == scorer), None)


def lowest_score(result: Mapping[str, Any], scorer: str | None) -> float:
    """Return the lowest score of a result, of one scorer if it is given."""
    entries = [entry for entry in result["scores"] if scorer in (None, entry["scorerId"])]
    return min((entry["score"] for entry in entries if entry["score"] is not None), default=float("inf"))


def describe_result(result: Mapping[str, Any], scorer: str | None) -> str:
    """Return a result in one line: its scores or its error, the input and the answer."""
    if result["error"]:
        return f"failed: {result['error']['message']} | {shorten(result['input'])}"
    entries = [entry for entry in result["scores"] if scorer in (None, entry["scorerId"])]
    scores = ", ".join(f"{entry['scorerId']} {entry['score']}" for entry in entries)
    return f"{scores} | {shorten(result['input'])} -> {shorten(result['output'])}"


def shorten(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def dataset_path(dataset_id: str, *rest: str) -> str:
    return "/".join(["/api/datasets", quote(dataset_id, safe=""), *(quote(part, safe="") for part in rest)])


def start_call(
    dataset_id: str, agent_id: str, version: str, scorers: Sequence[str] | None, max_cost: float | None, **fields: Any
) -> Call:
    """Return the request that starts an experiment. `fields` are further members of its body."""
    body: dict[str, Any] = {"targetType": "agent", "targetId": agent_id, "agentVersion": version, **fields}
    body |= {} if scorers is None else {"scorerIds": [*scorers]}
    body |= {} if max_cost is None else {"budget": {"maxCost": max_cost}}
    return Call("POST", dataset_path(dataset_id, "experiments"), body=body)


def experiment_call(started: Mapping[str, Any]) -> Call:
    return Call("GET", dataset_path(started["datasetId"], "experiments", started["id"]))


def results_call(started: Mapping[str, Any], page: int) -> Call:
    path = dataset_path(started["datasetId"], "experiments", started["id"], "results")
    return Call("GET", path, {"page": page, "perPage": PAGE_SIZE})


def cancel_call(started: Mapping[str, Any]) -> Call:
    return Call("POST", f"/api/experiments/{started['id']}/cancel", body={})


class Deadline:
    """The end of the time for an experiment."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.at = seconds, time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.at

    @property
    def error(self) -> ExperimentFailed:
        return ExperimentFailed(f"The experiment took longer than {self.seconds:g} seconds. It was cancelled.")


class Experiments:
    """Experiments of the synchronous client: `client.experiments`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def run(
        self,
        dataset_id: str,
        agent_id: str,
        *,
        version: str = "live",
        scorers: Sequence[str] | None = None,
        fail_under: Mapping[str, float] | None = None,
        max_cost: float | None = None,
        timeout: float = 3600.0,
        **fields: Any,
    ) -> Outcome:
        """Run an experiment to its end and return its results.

        `fail_under` are the lowest means by scorer, `timeout` is in seconds, and `fields` are further members of the
        API, such as `repeats` and `maxConcurrency`. Raise BarMissed, ExperimentFailed and ApiError.
        """
        fields = {**fields, "bars": dict(fail_under)} if fail_under else fields
        started = self.client.send(start_call(dataset_id, agent_id, version, scorers, max_cost, **fields))
        deadline, experiment = Deadline(timeout), started
        while experiment["status"] in UNFINISHED_STATUSES:
            if deadline.is_over:
                self.client.send(cancel_call(started))
                raise deadline.error
            time.sleep(POLL_SECONDS)
            experiment = self.client.send(experiment_call(started))
        return Outcome(experiment, [*self.results(experiment)]).check(fail_under)

    def results(self, experiment: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the results of an experiment, page by page."""
        page, has_more = 0, True
        while has_more:
            body = self.client.send(results_call(experiment, page))
            yield from body["results"]
            page, has_more = page + 1, body["pagination"]["hasMore"]


class AsyncExperiments:
    """Experiments of the asynchronous client: `client.experiments`."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def run(
        self,
        dataset_id: str,
        agent_id: str,
        *,
        version: str = "live",
        scorers: Sequence[str] | None = None,
        fail_under: Mapping[str, float] | None = None,
        max_cost: float | None = None,
        timeout: float = 3600.0,
        **fields: Any,
    ) -> Outcome:
        """Run an experiment to its end, as `Experiments.run` does."""
        fields = {**fields, "bars": dict(fail_under)} if fail_under else fields
        started = await self.client.send(start_call(dataset_id, agent_id, version, scorers, max_cost, **fields))
        deadline, experiment = Deadline(timeout), started
        while experiment["status"] in UNFINISHED_STATUSES:
            if deadline.is_over:
                await self.client.send(cancel_call(started))
                raise deadline.error
            await asyncio.sleep(POLL_SECONDS)
            experiment = await self.client.send(experiment_call(started))
        return Outcome(experiment, [result async for result in self.results(experiment)]).check(fail_under)

    async def results(self, experiment: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Yield the results of an experiment, page by page."""
        page, has_more = 0, True
        while has_more:
            body = await self.client.send(results_call(experiment, page))
            for result in body["results"]:
                yield result
            page, has_more = page + 1, body["pagination"]["hasMore"]
