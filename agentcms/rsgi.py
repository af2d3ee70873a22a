"""The RSGI application, which the web server of `agentcms.server.web` serves."""

from agentcms.wsgi import application as wsgi_application  # first: it loads Django

from agentcms.gateway.application import WebApplication  # isort: skip
from runs_app.engine import engine  # isort: skip

# The web server imports this module before it forks, so its processes share the memory of all libraries.
engine.preload()
web_application = WebApplication(wsgi_application)
