"""Installed applications, middleware, templates, language and time."""

from agentcms.settings.paths import BASE_DIR

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_htmx",
    "agentcms",
    "access_app",
    "jobs_app",
    "agents_app",
    "versions_app",
    "memory_app",
    "runs_app",
    "tools_app",
    "knowledge_app",
    "evals_app",
]

# The order is that of requests; responses take the opposite one.
MIDDLEWARE = [
    # First, so that it measures all other middleware, and counts the requests that it refuses.
    "agentcms.observability.middleware.RequestLogMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "agentcms.middleware.csp.ContentSecurityPolicyMiddleware",
    "agentcms.middleware.cors.CorsMiddleware",
    "agents_app.middleware.ChangeContextMiddleware",
    "agentcms.middleware.api_fast_path.ApiFastPathMiddleware",
    # The API fast path skips the middleware below, which only pages need.
    "agentcms.middleware.compression.PageGZipMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # After WhiteNoise, whose files any cache may store.
    "agentcms.middleware.private_pages.PrivatePageMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # After the check of the CSRF token. It needs the user and `request.htmx`.
    "agentcms.middleware.page_user.PageUserMiddleware",
    # These two render pages in place of responses of views. They need the session, the user and `request.htmx`.
    "agentcms.middleware.method_not_allowed.MethodNotAllowedPageMiddleware",
    "agentcms.middleware.signed_out.SignedOutPageMiddleware",
]

ROOT_URLCONF = "agentcms.urls"
WSGI_APPLICATION = "agentcms.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "agentcms.middleware.csp.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs_app.views.approval_count.waiting_approvals",
            ],
        },
    },
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "agentcms.web.formats"
USE_TZ = True
