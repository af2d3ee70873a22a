"""The admin pages of this app."""

from evals_app.admin import datasets, experiments

__all__ = ["datasets", "experiments"]
