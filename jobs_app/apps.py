from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The application for background jobs."""

    name = "jobs_app"
    verbose_name = "Jobs"
