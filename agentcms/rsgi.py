"""The RSGI application, which the web server of `agentcms.server.web` serves."""

from agentcms.wsgi import application as wsgi_application  # first: it loads Django

from django.conf import settings  # isort: skip
from django.db import connection  # isort: skip

from agentcms.db.database_settings import limit_statements  # isort: skip
from agentcms.gateway.application import WebApplication  # isort: skip
from runs_app.engine import engine  # isort: skip
from tools_app.preload import preload_clients  # isort: skip

limit_statements(connection.settings_dict, settings.DATABASE_STATEMENT_TIMEOUT)
# The web server imports this module before it forks, so its processes share the memory of all libraries.
engine.preload()
preload_clients()
web_application = WebApplication(wsgi_application)
