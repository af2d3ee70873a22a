"""The application that the web server serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")

application = get_wsgi_application()
