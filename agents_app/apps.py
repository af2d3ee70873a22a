from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class AgentsConfig(AppConfig):
    """The app of agents: configuration, registry and search."""

    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        from agents_app.search import database_objects  # needs the models to be loaded

        post_migrate.connect(database_objects.install_search_index, sender=self)
        connection_created.connect(database_objects.add_sqlite_functions)
        autodiscover_modules("agent_tools")
