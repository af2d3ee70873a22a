"""Reports of an experiment for CI: JSON and JUnit."""

from __future__ import annotations

import re
from xml.etree import ElementTree as XML

from agentcms.wire.json_types import JSONObject
from evals_app.models import Experiment, ExperimentResult

# ElementTree escapes markup, and lets through what no parser of XML 1.0 accepts, such as a NUL.
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def json_report(experiment: Experiment, missed: list[str]) -> JSONObject:
    """Return an experiment with its results and the bars that it missed."""
    return {
        "id": str(experiment.pk),
        "dataset": experiment.dataset_id,
        "datasetVersion": experiment.dataset_version,
        "targetType": experiment.target_type,
        "target": experiment.target_id,
        "version": experiment.version_number,
        "status": experiment.status,
        "summary": experiment.summary,
        "missed": missed,
        "results": [
            {
                "itemId": str(result.item_id),
                "attempt": result.attempt,
                "input": result.effective_input,
                "output": result.output,
                "error": result.error,
                "scores": result.scores,
            }
            for result in results_of(experiment)
        ],
    }


def junit_report(experiment: Experiment, missed: list[str]) -> str:
    """Return an experiment as JUnit XML: a test case for each result, and one for each bar that was missed."""
    results = results_of(experiment)
    errors = sum(result.error is not None for result in results)
    counts = {"tests": str(len(results) + len(missed)), "errors": str(errors), "failures": str(len(missed))}
    suite = XML.Element("testsuite", {"name": clean(experiment.title), **counts})
    for result in results:
        seconds = f"{(result.duration_ms or 0) / 1000:.3f}"
        case = XML.SubElement(
            suite, "testcase", classname=experiment.dataset_id, name=f"{result.item_id}/{result.attempt}", time=seconds
        )
        if result.error is not None:
            XML.SubElement(case, "error", message=clean(result.error["message"]))
    for text in missed:
        case = XML.SubElement(suite, "testcase", classname=experiment.dataset_id, name="bar")
        XML.SubElement(case, "failure", message=clean(text))
    return XML.tostring(suite, encoding="unicode")


def clean(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return NOT_IN_XML.sub("", text)


def results_of(experiment: Experiment) -> list[ExperimentResult]:
    return list(experiment.results.select_related("item_version").order_by("item_id", "attempt"))
