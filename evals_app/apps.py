from django.apps import AppConfig


class EvalsConfig(AppConfig):
    """Configuration of the app that evaluates agents: datasets, scorers, experiments and gates."""

    name = "evals_app"
    verbose_name = "Evaluations"

    def ready(self) -> None:
        from agents_app.registry import Kind, registry
        from evals_app import signals  # noqa: F401  connects the receivers
        from evals_app.gates.enforcement import notes_of_gates, refuse_unmet_gates, reject_gate_without_dataset
        from evals_app.models import ReleaseGate
        from evals_app.scorers.cached_scorers import scorer_entries, scorer_table
        from versions_app import publishing, trash

        # The apps below may not import this one, so they have lists and tables into which it enters what they call.
        publishing.guards.append(refuse_unmet_gates)
        publishing.notes_sources.append(notes_of_gates)
        trash.related_models.append(ReleaseGate)
        trash.row_checks.append(reject_gate_without_dataset)
        registry.staff_entries[Kind.SCORER] = scorer_entries
        registry.staff_revisions[Kind.SCORER] = scorer_table.revision
        registry.staff_reloads[Kind.SCORER] = scorer_table.reload
