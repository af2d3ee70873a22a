"""System checks of what development may do and production must not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning

from agentcms import environment

MIN_SECRET_LENGTH = 32
MIN_DISTINCT_CHARACTERS = 10
HOW_TO_CREATE_ONE = "Create one: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"


@register("environment", deploy=True)
def check_production(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return an error for each setting with which anybody could read secrets or act as another user."""
    return list(production_errors())


def production_errors() -> Iterator[CheckMessage]:
    """Yield an error for each setting that production refuses."""
    if settings.DEBUG:
        yield Error(
            "DEBUG is on, so error pages show code and settings to everybody.",
            hint="Remove DEBUG, or set DEBUG=no.",
            id="agentcms.E006",
        )
    if is_weak_secret(settings.SECRET_KEY):
        yield Error(
            f"SECRET_KEY is weak, so sessions can be forged. It needs {MIN_SECRET_LENGTH} random characters.",
            hint=f"{HOW_TO_CREATE_ONE}. Unless PROVIDER_KEY_SECRET is set, set PROVIDER_KEY_SECRET_OLD to the old "
            "SECRET_KEY, and run manage.py reencrypt_secrets: it decrypts the stored keys of model providers.",
            id="agentcms.E007",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield Error(
            "ALLOWED_HOSTS contains '*', so requests for any host are answered.",
            hint="List your own host names: cms.example.org",
            id="agentcms.E008",
        )


def is_weak_secret(secret: str) -> bool:
    """Return True if a secret is too short or too uniform to be random, or is an example."""
    is_random = len(secret) >= MIN_SECRET_LENGTH and len({*secret}) >= MIN_DISTINCT_CHARACTERS
    return not is_random or secret.startswith("django-insecure-")  # as Django makes one for a new project


@register(Tags.database, deploy=True)
def check_deployment(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """Return warnings for settings that do not suit production."""
    return list(deployment_warnings())


def deployment_warnings() -> Iterator[CheckMessage]:
    """Yield a warning for each setting that does not suit production."""
    threads = environment.read_int("WEB_THREADS", 16, minimum=1)
    if settings.DATABASE_URL and threads > settings.DATABASE_POOL_SIZE:
        yield CheckWarning(
            f"DATABASE_POOL_SIZE is {settings.DATABASE_POOL_SIZE} for {threads} WEB_THREADS: requests will wait for "
            "a connection.",
            id="agentcms.W001",
        )
    if str(settings.CACHES["default"]["BACKEND"]).endswith("LocMemCache"):
        no_broker = "" if settings.CELERY_BROKER_URL else ", and jobs have no broker"
        yield CheckWarning(
            f"REDIS_URL is not set: each process counts throttled calls alone{no_broker}.", id="agentcms.W002"
        )
    yield from security_warnings()


def security_warnings() -> Iterator[CheckMessage]:
    """Yield a warning for each setting of secrets and proxies that does not suit production."""
    if settings.PROVIDER_KEY_SECRET != settings.SECRET_KEY and is_weak_secret(settings.PROVIDER_KEY_SECRET):
        yield CheckWarning(
            "PROVIDER_KEY_SECRET is weak, so whoever has a backup can decrypt its secrets. It needs "
            f"{MIN_SECRET_LENGTH} random characters.",
            hint=f"{HOW_TO_CREATE_ONE}. Set PROVIDER_KEY_SECRET_OLD to the present one, and run "
            "manage.py reencrypt_secrets.",
            id="agentcms.W003",
        )
    if settings.HTTPS and not settings.TRUSTED_PROXIES:
        yield CheckWarning(
            "HTTPS is on, so there is a proxy, but TRUSTED_PROXIES is not set: throttles and the sign-in treat all "
            "callers as one.",
            hint="Set it to the address or the network of the proxy: TRUSTED_PROXIES=127.0.0.1",
            id="agentcms.W004",
        )
