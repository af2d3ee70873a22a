"""Models of the app, one file each."""

from evals_app.models.comparison import Comparison
from evals_app.models.dataset import Dataset
from evals_app.models.dataset_version import DatasetVersion
from evals_app.models.experiment import Experiment, ExperimentResult
from evals_app.models.gate import ReleaseGate
from evals_app.models.item import DatasetItem, ItemVersion
from evals_app.models.scorer import DeletedScorer, Scorer, ScorerVersion

__all__ = [
    "Comparison",
    "Dataset",
    "DatasetItem",
    "DatasetVersion",
    "DeletedScorer",
    "Experiment",
    "ExperimentResult",
    "ItemVersion",
    "ReleaseGate",
    "Scorer",
    "ScorerVersion",
]
