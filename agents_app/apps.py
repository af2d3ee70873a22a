from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class AgentsConfig(AppConfig):
    """What an agent is."""

    name = "agents_app"
    verbose_name = "Agents"

    def ready(self) -> None:
        autodiscover_modules("agent_tools")
