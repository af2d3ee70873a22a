import pytest
from django.test import Client

from tests.agentcms import urls


@pytest.fixture
def http(settings):
    """Return a client of the routes in `tests/agentcms/urls.py` that does not raise exceptions."""
    settings.ROOT_URLCONF = "tests.agentcms.urls"
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
    # Not the templates of the project, whose URLs do not exist here. Django has its own for the other errors.
    loader = (
        "django.template.loaders.locmem.Loader",
        {"400.html": "<h1>Refused</h1>", "503.html": "<h1>Unavailable</h1>"},
    )
    backend = "django.template.backends.django.DjangoTemplates"
    settings.TEMPLATES = [{"BACKEND": backend, "OPTIONS": {"loaders": [loader]}}]
    settings.ALLOWED_HOSTS = ["testserver"]
    return Client(raise_request_exception=False)


@pytest.fixture
def raised(http):
    """Return a function that requests a route which raises the given exception."""

    def answer(exception, url="/api/raising", **extra):
        urls.RAISED["exception"] = exception
        return http.get(url, **extra)

    return answer
