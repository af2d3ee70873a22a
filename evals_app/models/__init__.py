"""Models of the app, one file each."""

from evals_app.models.dataset import Dataset
from evals_app.models.dataset_version import DatasetVersion
from evals_app.models.item import DatasetItem, ItemVersion

__all__ = ["Dataset", "DatasetItem", "DatasetVersion", "ItemVersion"]
