"""Comparisons in words."""

from __future__ import annotations

from agentcms.wire.json_types import JSONObject
from evals_app.compare.statistics import MIN_PAIRS
from evals_app.models import Experiment


def describe_statistics(entry: JSONObject, baseline: Experiment, candidate: Experiment) -> str:
    """Return what the statistics of one scorer say. The number of a version only names it among those of one agent."""
    count = entry["pairs"]
    if count == 0:
        return "No item has a score in both experiments."
    if count < MIN_PAIRS:
        return f"{_counts(entry)[0].upper()}{_counts(entry)[1:]}. {MIN_PAIRS} pairs are needed for an interval."
    if not entry["isDifferent"]:
        return f"No difference can be seen with {count} items."
    has_same_target = (baseline.target_type, baseline.target_id) == (candidate.target_type, candidate.target_id)
    is_of_version = has_same_target and candidate.version_number and not candidate.has_submitted_results
    name = f"Version {candidate.version_number}" if is_of_version else candidate.title
    word = "higher" if entry["difference"] > 0 else "lower"
    low, high = sorted((abs(entry["low"]), abs(entry["high"])))
    return f"{name} scores {abs(entry['difference']):.2f} {word} ({low:.2f} to {high:.2f}); {_counts(entry)}."


def find_differing_versions(baseline: Experiment, candidate: Experiment) -> JSONObject:
    """Return the versions of each stored scorer that scored two experiments by different ones, by its key."""
    before, after = baseline.scorer_versions, candidate.scorer_versions
    return {
        key: {"baseline": before[key], "candidate": after[key]}
        for key in sorted({*before} & {*after})
        if before[key] != after[key]
    }


def _counts(entry: JSONObject) -> str:
    items = "item" if entry["better"] == 1 else "items"
    return f"{entry['better']} {items} better, {entry['worse']} worse, {entry['same']} the same"
