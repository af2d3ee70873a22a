from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Running stored agents."""

    name = "runs_app"
    verbose_name = "Runs"

    def ready(self) -> None:
        from runs_app import checks, signals, workflows  # noqa: F401  importing them registers what they hold
