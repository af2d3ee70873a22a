from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Running stored agents."""

    name = "runs_app"
    verbose_name = "Runs"

    def ready(self) -> None:
        from agents_app.registry import Kind, registry
        from runs_app import providers, signals, workflows  # noqa: F401  importing them registers what they hold

        registry.kept[Kind.MODEL_PROVIDER] = providers.kept_entries
