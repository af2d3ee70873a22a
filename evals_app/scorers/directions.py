"""Scorers whose high scores are bad, such as a judge of toxicity."""

from __future__ import annotations

from evals_app.models import Experiment, ScorerVersion
from evals_app.scorers.presets import PRESETS

INVERTED_TYPES = [name for name, preset in PRESETS.items() if preset.is_inverted]


def find_inverted_scorers(*experiments: Experiment) -> frozenset[str]:
    """Return the keys of the scorers of experiments that are better the lower they score."""
    keys = {key for row in experiments for key in row.scorer_versions}
    if not keys:
        return frozenset()
    versions = ScorerVersion.objects.filter(scorer__in=keys, snapshot__type__in=INVERTED_TYPES).order_by()
    used = {(key, number) for row in experiments for key, number in row.scorer_versions.items()}
    return frozenset(key for key, number in versions.values_list("scorer", "version_number") if (key, number) in used)
