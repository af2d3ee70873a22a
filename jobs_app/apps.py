from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The application for background jobs."""

    name = "jobs_app"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from jobs_app import signals  # noqa: F401  connects the receivers
