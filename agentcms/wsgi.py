"""The application that the web server serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")

from agentcms.chunked import measured

application = measured(get_wsgi_application())
