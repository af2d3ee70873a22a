"""Approvals, and the e-mail and webhooks about them."""

from agentcms import environment
from agentcms.settings.limits import MAX_DAYS

APPROVAL_DAYS = environment.read_int("APPROVAL_DAYS", 7, minimum=1, maximum=MAX_DAYS)
APPROVAL_LOG_DAYS = environment.read_int("APPROVAL_LOG_DAYS", 730, minimum=1, maximum=MAX_DAYS)

# --- Notices

# The address of this copy, for links in e-mail and webhooks.
PUBLIC_URL = environment.read_url("PUBLIC_URL", "http", "https").rstrip("/")
# Without a host no e-mail is sent.
EMAIL_HOST = environment.read_text("EMAIL_HOST")
EMAIL_PORT = environment.read_int("EMAIL_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = environment.read_text("EMAIL_USER")
EMAIL_HOST_PASSWORD = environment.read_text("EMAIL_PASSWORD")
EMAIL_SECURITY = environment.read_choice("EMAIL_SECURITY", "starttls", "tls", "none")
EMAIL_USE_TLS, EMAIL_USE_SSL = EMAIL_SECURITY == "starttls", EMAIL_SECURITY == "tls"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = environment.read_text("EMAIL_FROM", "agentcms@localhost")
# Receives a signed request for each call that waits for people, and for each decision.
APPROVAL_WEBHOOK_URL = environment.read_url("APPROVAL_WEBHOOK_URL", "http", "https")
APPROVAL_WEBHOOK_SECRET = environment.read_text("APPROVAL_WEBHOOK_SECRET")
