"""Readers of environment variables. Their errors name the variable."""

import json
import os
import secrets
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from agentcms.rate import Rate
from agentcms.wire.json_types import JSONObject

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}
TRACES_PROTOCOL = "http/protobuf"  # the only one of OpenTelemetry in which traces are exported


def read_text(name: str, default: str = "") -> str:
    """Return the variable, or the default where it is unset or empty."""
    return os.environ.get(name) or default


def read_bool(name: str, default: bool) -> bool:
    """Return the variable as a bool. Raise ImproperlyConfigured unless it is yes or no."""
    value = os.environ.get(name, "yes" if default else "no").strip().lower()
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be yes or no, not {value!r}.")


def read_int(name: str, default: int, minimum: int = 0, maximum: int = 2**31 - 1) -> int:
    """Return the variable as a whole number. Raise ImproperlyConfigured if it is none or out of range."""
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
    """Return the variable if it is one of the choices; the first choice is the default."""
    value = read_text(name, choices[0]).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def read_choice_or_path(name: str, *choices: str) -> str:
    """Return the variable if it is one of the choices, of which the first is the default, or the path of a class."""
    value = read_text(name, choices[0])
    return value if "." in value else read_choice(name, *choices)


def read_url(name: str, *schemes: str) -> str:
    """Return the variable as a URL of one of these schemes, or "". Errors do not quote it: it may have a password."""
    value = read_text(name)
    scheme, separator, rest = value.partition("://")
    if value and (not separator or not rest or scheme not in schemes):
        raise ImproperlyConfigured(f"{name} must begin with one of {', '.join(f'{name}://' for name in schemes)}.")
    return value


def read_server_url(name: str, *schemes: str) -> str:
    """Return the variable as a URL of a server, like `read_url`, whose port is a number if it has one."""
    value = read_url(name, *schemes)
    try:
        _ = urlsplit(value).port
    except ValueError:  # a password with a slash looks like a port too
        raise ImproperlyConfigured(
            f"{name} must have a number as its port. Percent-encode special characters of its password: # is %23."
        ) from None
    return value


def read_traces_endpoint() -> str:
    """Return the endpoint of the standard OpenTelemetry variables, or "" if traces are off."""
    is_disabled = read_bool("OTEL_SDK_DISABLED", default=False) or read_text("OTEL_TRACES_EXPORTER") == "none"
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    endpoint = next(filter(None, (read_url(name, "http", "https") for name in names)), "")
    return "" if is_disabled else endpoint


def read_traces_protocol() -> str:
    """Return the protocol of the standard OpenTelemetry variables."""
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    return next(filter(None, map(read_text, names)), TRACES_PROTOCOL)


def read_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return the variable as IP networks, separated by commas."""
    try:
        return [ip_network(word) for word in read_list(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be IP addresses or networks, such as 10.0.0.0/8: {error}.") from None


def read_rate(name: str, default: str) -> Rate | None:
    """Return the variable as a rate, or None for `off`."""
    try:
        return Rate.parse(read_text(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


def read_list(name: str, default: str = "") -> list[str]:
    """Return the variable as a list of texts, separated by commas."""
    return [word.strip() for word in read_text(name, default).split(",") if word.strip()]


def read_json_file(name: str) -> JSONObject:
    """Return the JSON object in the file that the variable names, or an empty one if it is unset."""
    path = read_text(name)
    if not path:
        return {}
    try:
        value = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"{name} must be the path of a JSON file: {error}") from None
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"{name} must be the path of a file with a JSON object.")
    return value


def create_data_folder(folder: Path) -> None:
    """Create the folder of DATA_DIR, for this user only. Raise ImproperlyConfigured if it cannot be created."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        # Python reports a file in the place of the folder only as "File exists".
        reason = "There is a file with this name" if folder.is_file() else error.strerror
        raise ImproperlyConfigured(
            f"The data folder {folder} cannot be created: {reason}. Set DATA_DIR to a folder that this user may write."
        ) from None


def load_or_create_secret(path: Path) -> str:
    """Return the secret in the file. Create the file with a random secret where it does not exist, or is blank."""
    if not (secret := read_secret(path)):
        create_data_folder(path.parent)
        # Written under another name first: a process that dies meanwhile leaves no half of a secret under this one.
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        write_secret(temporary, secrets.token_urlsafe(48))
        # Blank, as after a power failure on some file systems. Read again: another process may have replaced it.
        if path.exists() and not read_secret(path):
            path.unlink(missing_ok=True)
        with suppress(FileExistsError):  # link is atomic: the first process wins, and none reads half a secret
            os.link(temporary, path)
        temporary.unlink()
        # The secret of the file, which may be that of another process that started at the same time.
        secret = read_secret(path)
    return secret


def read_secret(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def write_secret(path: Path, secret: str) -> None:
    """Write a file for this user only, to the disk: it encrypts what the database stores."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())


def read_address_file(path: Path) -> str:
    """Return the address that the embedded Valkey wrote to its file, or "" without a file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
