"""Read settings from environment variables, with errors that name the variable."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    """The variable as it stands, or the default where it is unset or empty."""
    return os.environ.get(name) or default


def flag(name: str, default: bool) -> bool:
    """The variable as a yes or a no."""
    value = os.environ.get(name, "yes" if default else "no").strip().lower()
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")


def number(name: str, default: int, minimum: int = 0) -> int:
    """The variable as a whole number of at least `minimum`."""
    value = os.environ.get(name) or str(default)
    try:
        result = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {value!r}.") from None
    if result < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}, not {result}.")
    return result


def words(name: str, default: str = "") -> list[str]:
    """The variable as a list, split at commas."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def kept_secret(path: Path) -> str:
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


def kept_address(path: Path) -> str:
    """The address that a running embedded server left in its file, if any."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
