"""The Celery application, its tasks and its schedule."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")

app = Celery("agentcms")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
