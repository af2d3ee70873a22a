from django.apps import AppConfig


class AgentCMSConfig(AppConfig):
    """The top of the house."""

    name = "agentcms"
    verbose_name = "Agent CMS"

    def ready(self) -> None:
        # Tasks that a web request sends must know the broker. Not in the package itself: the supervisor and the
        # watchdog import that, and have no use for 20 MB of Celery.
        from agentcms import celery, checks  # noqa: F401  importing checks registers them
        from agentcms.observability import metrics

        metrics.connect_signals()
