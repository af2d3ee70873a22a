from contextlib import suppress

from django.apps import AppConfig
from django.conf import settings
from django.forms import Field

# As in the issues of the API and of JSON Schema, which stand beside those of forms. Fields copy it when they are made,
# and those of Django's own forms are made while the models are loaded.
Field.default_error_messages |= {
    "required": "This is required.",
    "min_value": "This must be greater than or equal to %(limit_value)s.",
    "max_value": "This must be less than or equal to %(limit_value)s.",
}


class AgentCMSConfig(AppConfig):
    """The application that registers checks, Celery and metrics."""

    name = "agentcms"
    verbose_name = "Agent CMS"

    def ready(self) -> None:
        # A web process sends tasks, so it needs Celery too. An import in the package itself would load Celery into
        # the supervisor and the guard of its orphans, which do not need it.
        from agentcms import celery, checks  # noqa: F401  the import registers the checks
        from agentcms.observability import metrics
        from agentcms.web.header_parameters import reject_invalid_parameters

        metrics.connect_signals()
        reject_invalid_parameters()
        with suppress(OSError):  # `manage.py check` reports a folder that is not writable
            settings.FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
