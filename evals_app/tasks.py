"""Celery tasks of evaluations. Importing this module registers the job handlers."""

from __future__ import annotations

from evals_app.comparing import stored  # noqa: F401  registers its handler
from evals_app.exchange import import_job  # noqa: F401  registers its handler
from evals_app.experiments import walk  # noqa: F401  registers its handler
