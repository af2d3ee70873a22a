from django.apps import AppConfig
from django.db.models.signals import post_migrate


class VersionsConfig(AppConfig):
    """The app of the version history of agents."""

    name = "versions_app"
    verbose_name = "Versions"

    def ready(self) -> None:
        from versions_app import signals  # noqa: F401  connects the receivers
        from versions_app.integrity import triggers

        post_migrate.connect(triggers.install_trigger, sender=self)
