from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Long work and how far it has come."""

    name = "jobs_app"
    verbose_name = "Jobs"
