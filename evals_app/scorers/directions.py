"""Scorers whose high scores are bad, such as a judge of toxicity."""

from __future__ import annotations

from evals_app.models import Experiment, ScorerVersion
from evals_app.scorers.presets import PRESETS

INVERTED_TYPES = [name for name, preset in PRESETS.items() if preset.is_inverted]


def find_inverted_scorers(*experiments: Experiment) -> frozenset[str]:
    """Return the keys of the scorers of experiments that are better the lower they score."""
    # An ended experiment knows them by its figures: a scorer, or the version that scored, may be deleted later.
    known = {
        key
        for row in experiments
        for key, figures in row.summary.get("scorers", {}).items()
        if figures.get("lowerIsBetter")
    }
    keys = {key for row in experiments for key in row.scorer_versions} - known
    if not keys:
        return frozenset(known)
    versions = ScorerVersion.objects.filter(scorer__in=keys, snapshot__type__in=INVERTED_TYPES).order_by()
    used = {(key, number) for row in experiments for key, number in row.scorer_versions.items()}
    by_version = (key for key, number in versions.values_list("scorer", "version_number") if (key, number) in used)
    return frozenset(known).union(by_version)
