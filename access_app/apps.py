from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Who may do what."""

    name = "access_app"
    verbose_name = "Access"
