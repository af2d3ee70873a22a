"""The application that the web server serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")

from django.conf import settings
from django.db import connection
from django.urls import get_resolver
from granian.utils.proxies import wrap_wsgi_with_proxy_headers

from agentcms import shutdown
from agentcms.middleware.wsgi_charset import require_utf8
from agentcms.middleware.wsgi_chunked import with_content_length

application = require_utf8(with_content_length(get_wsgi_application()))

from agentcms.observability import metrics  # noqa: E402  its models are there now

if settings.TRUSTED_PROXIES:
    # Or everybody behind a proxy would be one address, and one of them could use up the tries to sign in of all.
    application = wrap_wsgi_with_proxy_headers(application, [str(network) for network in settings.TRUSTED_PROXIES])

if connection.vendor == "postgresql":
    _ = get_resolver().url_patterns  # or the first request would wait for the views; embedded, memory counts more

# What was loaded stays: the garbage collector need not walk it again and again, nor after every few hundred objects.
# Calls leave it little; it must not become so much that its turn takes long, for nobody is answered meanwhile.
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)

metrics.reserve_files()
shutdown.install_signal_listener()
