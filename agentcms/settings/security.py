"""Secrets, hosts, HTTPS, the content security policy and sign-in."""

from agentcms import environment
from agentcms.middleware.csp import NONCE, NONE, SELF
from agentcms.settings.paths import DATA_DIR

DEBUG = environment.read_bool("DEBUG", default=False)
SECRET_KEY = environment.read_text("SECRET_KEY") or environment.load_or_create_secret(DATA_DIR / "secret_key")
ALLOWED_HOSTS = environment.read_list("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = environment.read_list("CSRF_TRUSTED_ORIGINS")
CSRF_FAILURE_VIEW = "agentcms.web.refused_forms.csrf_failed"
HTTPS = environment.read_bool("HTTPS", default=False)
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]  # Prometheus reads it over plain HTTP from the internal network
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
# Only with HTTPS=yes is there a proxy that sets the header. Otherwise any client could send it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
# Own pages need the Referer: the check of CSRF tokens over HTTPS, and the way back to a form that was refused.
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [NONE],
    "script-src": [NONCE],
    # CodeMirror adds a style element, with the nonce.
    "style-src": [SELF, NONCE],
    "font-src": [SELF],
    "img-src": [SELF, "data:"],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}
# The script tags of Django's admin have no nonce.
SECURE_CSP_BELOW = {"/admin/": {"script-src": [SELF, NONCE]}}
SESSION_COOKIE_SAMESITE = "Lax"

# --- Sign-in

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
SESSION_ENGINE = "access_app.sessions"
# Browsers limit cookies to 400 days.
SESSION_COOKIE_AGE = environment.read_int("SESSION_DAYS", 14, minimum=1, maximum=400) * 86_400
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "agents:list"
LOGOUT_REDIRECT_URL = "login"
