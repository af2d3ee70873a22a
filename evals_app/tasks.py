"""Celery tasks of evaluations. Importing this module registers the job handlers."""

from __future__ import annotations

import evals_app.compare.jobs
import evals_app.exchange.import_job
import evals_app.experiments.jobs
import evals_app.experiments.running.foreground  # noqa: F401
