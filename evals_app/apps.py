from django.apps import AppConfig


class EvalsConfig(AppConfig):
    """Configuration of the app that evaluates agents: datasets, scorers, experiments and gates."""

    name = "evals_app"
    verbose_name = "Evaluations"

    def ready(self) -> None:
        from agents_app.registry import Kind, registry
        from evals_app.scorers import table

        registry.staff_entries[Kind.SCORER] = table.staff_entries
        registry.staff_revisions[Kind.SCORER] = table.revision
