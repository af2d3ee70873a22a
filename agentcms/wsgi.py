"""The WSGI application."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")

from django.conf import settings
from django.urls import get_resolver
from granian.utils.proxies import wrap_wsgi_with_proxy_headers

from agentcms.middleware.wsgi_addresses import unmap_addresses
from agentcms.middleware.wsgi_charset import require_utf8
from agentcms.middleware.wsgi_media_types import lower_media_types

application = unmap_addresses(lower_media_types(require_utf8(get_wsgi_application())))

if settings.TRUSTED_PROXIES:
    # Otherwise all users behind a proxy share one address, and one of them could use up the sign-in attempts of all.
    # Unmapped before the list of proxies is searched, and after it for the address of the client that a proxy names.
    networks = [str(network) for network in settings.TRUSTED_PROXIES]
    application = unmap_addresses(wrap_wsgi_with_proxy_headers(application, networks))

# Load the views now: the first request of each process would wait for them. The web server imports this module before
# it forks, so its processes share their memory.
_ = get_resolver().url_patterns

# Modules stay loaded, so the garbage collector must not scan them. Requests leave few reference cycles, so it runs
# rarely; the thresholds must stay low enough for short pauses, because all threads wait for a collection.
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)
