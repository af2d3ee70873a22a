"""Values for the setting `STORAGES`."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

ADDRESSING_STYLES = ("path", "virtual", "auto")
URL_OPTIONS = ("endpoint", "region", "addressing")
MAX_MEMORY_SIZE = 1 << 20  # bytes of a downloaded file; a larger one is in a temporary file
# Secrets of AWS often have a slash, which ends the part of the URL that names the bucket.
BUCKET_MESSAGE = (
    "STORAGE_URL must name a bucket: s3://bucket. If it has credentials, percent-encode their special characters, "
    "such as / as %2F."
)
is_bucket_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch
MISSING_PACKAGES_MESSAGE = (
    "STORAGE_URL names a bucket, which needs the packages of requirements-s3.txt. Install them: scripts/environment s3"
)


def storage_config(url: str, data_dir: Path, folder: str) -> dict[str, object]:
    """Return a folder in the bucket of the URL or, without one, in the data folder. Raise ImproperlyConfigured."""
    if url:
        return bucket_config(url, folder)
    options = {
        "location": str(data_dir / folder),
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}


def bucket_config(url: str, folder: str) -> dict[str, object]:
    """Return a folder in the bucket of `s3://bucket/folder?endpoint=…&region=…&addressing=…`.

    Without a key and a secret in the URL, the client looks for them where AWS does: in its environment variables, in
    ~/.aws, and at the machine. Errors do not quote the URL, because it may have a secret.
    """
    # Packages that most installations do not need: boto3 takes 30 MB.
    if not (find_spec("storages") and find_spec("boto3")):
        raise ImproperlyConfigured(MISSING_PACKAGES_MESSAGE)
    try:
        parts = urlsplit(url)
    except ValueError:  # an unmatched bracket
        raise ImproperlyConfigured(BUCKET_MESSAGE) from None
    options = url_options(parts)
    config = {
        "bucket_name": unquote(parts.netloc.rpartition("@")[2]),
        "location": "/".join(filter(None, (parts.path.strip("/"), folder))),
        "endpoint_url": options.get("endpoint"),
        "region_name": options.get("region"),
        # Bucket names as host names need DNS entries, which servers other than that of AWS rarely have.
        "addressing_style": options.get("addressing", "path" if "endpoint" in options else "auto"),
        "access_key": unquote(parts.username or "") or None,
        "secret_key": unquote(parts.password or "") or None,
        "max_memory_size": MAX_MEMORY_SIZE,
        "file_overwrite": False,
    }
    return {
        "BACKEND": "agentcms.backends.s3_storage.BucketStorage",
        "OPTIONS": {name: value for name, value in config.items() if value is not None},
    }


def url_options(parts: SplitResult) -> dict[str, str]:
    """Return the validated query of the URL."""
    options = dict(parse_qsl(parts.query))
    if unknown := sorted(set(options) - set(URL_OPTIONS)):
        raise ImproperlyConfigured(f"STORAGE_URL has unknown options: {', '.join(unknown)}. Use {URL_OPTIONS}.")
    if not is_bucket_name(unquote(parts.netloc.rpartition("@")[2])):
        raise ImproperlyConfigured(BUCKET_MESSAGE)
    if not options.get("endpoint", "https://").startswith(("https://", "http://")):
        raise ImproperlyConfigured("The endpoint of STORAGE_URL must begin with https:// or http://.")
    if options.get("addressing", "auto") not in ADDRESSING_STYLES:
        raise ImproperlyConfigured(f"The addressing of STORAGE_URL must be one of {', '.join(ADDRESSING_STYLES)}.")
    return options
