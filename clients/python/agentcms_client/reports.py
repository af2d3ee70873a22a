"""Reports of an experiment for CI: JSON and JUnit, in the form of the command of the server."""

from __future__ import annotations

import re
from xml.etree import ElementTree as XML

from agentcms_client.json_types import JSONObject
from agentcms_client.outcomes import Outcome

RESULT_FIELDS = ("itemId", "attempt", "input", "output", "error", "scores")
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def json_report(outcome: Outcome) -> JSONObject:
    """Return an experiment with its results and the bars that it missed."""
    experiment = outcome.experiment
    return {
        "id": experiment["id"],
        "dataset": experiment["datasetId"],
        "datasetVersion": experiment["datasetVersion"],
        "targetType": experiment["targetType"],
        "target": experiment["targetId"],
        "version": experiment["agentVersionNumber"],
        "status": outcome.status,
        "summary": experiment["summary"],
        "missed": outcome.shortfalls,
        "results": [{name: result[name] for name in RESULT_FIELDS} for result in outcome.results],
    }


def junit_report(outcome: Outcome) -> str:
    """Return an experiment as JUnit XML: a test case for each result, and one for each bar that was missed."""
    tests, failures = len(outcome.results) + len(outcome.shortfalls), len(outcome.shortfalls)
    counts = {"tests": str(tests), "errors": str(len(outcome.failed)), "failures": str(failures)}
    dataset = clean(outcome.experiment["datasetId"])
    suite = XML.Element("testsuite", {"name": clean(outcome.title), **counts})
    for result in outcome.results:
        name, seconds = f"{result['itemId']}/{result['attempt']}", f"{(result['durationMs'] or 0) / 1000:.3f}"
        case = XML.SubElement(suite, "testcase", classname=dataset, name=name, time=seconds)
        if result["error"] is not None:
            XML.SubElement(case, "error", message=clean(result["error"]["message"]))
    for sentence in outcome.shortfalls:
        case = XML.SubElement(suite, "testcase", classname=dataset, name="bar")
        XML.SubElement(case, "failure", message=clean(sentence))
    return XML.tostring(suite, encoding="unicode")


def clean(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return NOT_IN_XML.sub("", text)
