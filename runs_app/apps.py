from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Configuration of the app that runs agents."""

    name = "runs_app"
    verbose_name = "Runs"

    def ready(self) -> None:
        from agentcms.vectors.embedders import register_resolver
        from agents_app.registry import Kind, registry
        from runs_app import signals  # noqa: F401  connects the receivers
        from runs_app.building import workflows  # noqa: F401  registers the job handler of workflows
        from runs_app.embedders.provider_embedders import find_provider_embedder
        from runs_app.providers import cached_providers, model_settings  # noqa: F401  registers the settings of models

        register_resolver(find_provider_embedder)
        registry.staff_entries[Kind.MODEL_PROVIDER] = cached_providers.staff_entries
        registry.staff_reloads[Kind.MODEL_PROVIDER] = cached_providers.reload
