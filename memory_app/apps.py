from django.apps import AppConfig


class MemoryConfig(AppConfig):
    """Configuration of the app that stores conversations."""

    name = "memory_app"
    verbose_name = "Memory"
