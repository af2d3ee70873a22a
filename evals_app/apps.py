from django.apps import AppConfig


class EvalsConfig(AppConfig):
    """Configuration of the app that evaluates agents: datasets, scorers, experiments and gates."""

    name = "evals_app"
    verbose_name = "Evaluations"
