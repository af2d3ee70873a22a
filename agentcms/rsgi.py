"""The RSGI application, which the web server of `agentcms.server.web` serves."""

from agentcms.wsgi import application as wsgi_application  # first: it loads Django

from agentcms.gateway.application import WebApplication  # isort: skip

web_application = WebApplication(wsgi_application)
