from django.apps import AppConfig


class AccessConfig(AppConfig):
    """The application for users, roles and API keys."""

    name = "access_app"
    verbose_name = "Access"
