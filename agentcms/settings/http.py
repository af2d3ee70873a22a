"""The web server and the API."""

import re
from typing import Any

from agentcms import environment
from agentcms.settings.files import DATA_UPLOAD_MAX_MEMORY_SIZE

WEB_THREADS = environment.read_int("WEB_THREADS", 16, minimum=1)
# A body must arrive within this many seconds, plus one for each REQUEST_BODY_MIN_RATE bytes.
REQUEST_BODY_TIMEOUT = environment.read_int("REQUEST_BODY_TIMEOUT", 10, minimum=1)
REQUEST_BODY_MIN_RATE = environment.read_int("REQUEST_BODY_MIN_RATE", 4096, minimum=1)
# A web process that does not react for this many seconds is replaced. 0 switches this off.
WEB_STALL_TIMEOUT = environment.read_int("WEB_STALL_TIMEOUT", 20)

# --- API

TRUSTED_PROXIES = environment.read_networks("TRUSTED_PROXIES")
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "access_app.authentication.ApiKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    # DRF's own parser accepts repeated keys, and NUL characters and lone surrogates, which a database rejects.
    "DEFAULT_PARSER_CLASSES": ["agentcms.api.parsers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["agentcms.api.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "agentcms.api.renderers.Negotiation",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_THROTTLE_CLASSES": ["access_app.throttling.api.CallThrottle"],
    "EXCEPTION_HANDLER": "agentcms.api.exceptions.exception_handler",
    # DRF would read the query parameter `format` as the name of a renderer, and answer 404 to any other value.
    "URL_FORMAT_OVERRIDE": None,
}

# API_THROTTLE limits the calls of an API key, or of an address without one. API_WRONG_KEYS limits the wrong keys of an
# address.
API_THROTTLE = environment.read_rate("API_THROTTLE", "5000/s")
API_WRONG_KEYS = environment.read_rate("API_WRONG_KEYS", "60/min")
IMPORT_MAX_BYTES = environment.read_int("IMPORT_MAX_MB", 200, minimum=1) * 1024 * 1024
# Only these URLs receive a body above DATA_UPLOAD_MAX_MEMORY_SIZE. A form adds its other fields to the file.
UPLOAD_PATHS = re.compile(
    r"/api/stored/agent-import|/exchange/import"
    r"|/api/knowledge/[^/]+/documents|/knowledge/[^/]+/upload"
    r"|/api/datasets/[^/]+/import|/datasets/[^/]+/import"
)
UPLOAD_MAX_BYTES = IMPORT_MAX_BYTES + DATA_UPLOAD_MAX_MEMORY_SIZE
CORS_ORIGINS = environment.read_list("CORS_ORIGINS")
