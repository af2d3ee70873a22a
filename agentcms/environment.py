"""Read settings from environment variables, with errors that name the variable."""

import os
import secrets
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from agentcms.rate import Rate

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def read_text(name: str, default: str = "") -> str:
    """The variable as it stands, or the default where it is unset or empty."""
    return os.environ.get(name) or default


def read_bool(name: str, default: bool) -> bool:
    """The variable as a yes or a no."""
    value = os.environ.get(name, "yes" if default else "no").strip().lower()
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")


def read_int(name: str, default: int, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
    """The variable as a whole number between two others."""
    value = os.environ.get(name) or str(default)
    try:
        result = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if result < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {result}.")
    if result > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum}, not {result}.")
    return result


def read_choice(name: str, *choices: str) -> str:
    """The variable as one of these words, the first where it is unset."""
    value = read_text(name, choices[0]).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def read_url(name: str, *schemes: str) -> str:
    """The variable as an address of one of these schemes, or nothing; its errors do not quote the password in it."""
    value = read_text(name)
    scheme, separator, rest = value.partition("://")
    if value and (not separator or not rest or scheme not in schemes):
        raise ImproperlyConfigured(f"{name} must begin with one of {', '.join(f'{each}://' for each in schemes)}.")
    return value


def read_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """The variable as a list of addresses and networks, split at commas."""
    try:
        return [ip_network(word) for word in read_list(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be addresses or networks, such as 10.0.0.0/8: {error}.") from None


def read_rate(name: str, default: str) -> Rate | None:
    """The variable as so many calls in a time, or None for `off`."""
    try:
        return Rate.read(read_text(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


def read_list(name: str, default: str = "") -> list[str]:
    """The variable as a list, split at commas."""
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def load_or_create_secret(path: Path) -> str:
    """A random secret that is made once and then read from its file."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        with suppress(FileExistsError):  # another process may be first; nobody reads half a secret
            os.link(draft, path)
        draft.unlink()
    return path.read_text().strip()


def read_address_file(path: Path) -> str:
    """The address that a running embedded server left in its file, if any."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
