"""The setting STORAGE_URL."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from agentcms.backends import storage
from agentcms.backends.storage import storage_config

DATA = Path("/data")


def bucket_options(url):
    config = storage_config(url, DATA, "exchange")
    assert config["BACKEND"] == "agentcms.backends.s3_storage.BucketStorage"
    return config["OPTIONS"]


def test_files_are_in_private_local_folders_by_default():
    options = storage_config("", DATA, "exchange")["OPTIONS"]

    assert (options["location"], options["file_permissions_mode"]) == ("/data/exchange", 0o600)


def test_a_bucket_of_aws_needs_its_name_only():
    options = bucket_options("s3://files")

    assert (options["bucket_name"], options["location"], options["addressing_style"]) == ("files", "exchange", "auto")
    assert {"access_key", "endpoint_url"} & options.keys() == set()


def test_a_url_names_folder_endpoint_region_and_credentials():
    options = bucket_options("s3://me:a%2Fb@files/of/agents?endpoint=http://127.0.0.1:9000&region=eu-central-1")

    assert (options["access_key"], options["secret_key"]) == ("me", "a/b")
    assert (options["bucket_name"], options["location"]) == ("files", "of/agents/exchange")
    assert (options["endpoint_url"], options["region_name"]) == ("http://127.0.0.1:9000", "eu-central-1")
    assert options["addressing_style"] == "path"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://files?end=http://x", "STORAGE_URL has unknown options: end."),
        ("s3://me:secret@?region=x", "STORAGE_URL must name a bucket: s3://bucket"),
        ("s3://me:secret/x@files", "STORAGE_URL must name a bucket: s3://bucket"),
        ("s3://me:secret[x@files", "STORAGE_URL must name a bucket: s3://bucket"),
        (
            "s3://me:secret@files?endpoint=minio:9000",
            "The endpoint of STORAGE_URL must begin with https:// or http://.",
        ),
        ("s3://files?addressing=host", "The addressing of STORAGE_URL must be one of path, virtual, auto."),
    ],
)
def test_an_invalid_url_is_an_error_without_the_secret(url, message):
    with pytest.raises(ImproperlyConfigured) as error:
        storage_config(url, DATA, "exchange")

    assert str(error.value).startswith(message)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("package", ["storages", "boto3"])
def test_missing_packages_are_named_with_their_installation(monkeypatch, package):
    monkeypatch.setattr(storage, "find_spec", lambda name: None if name == package else object())

    with pytest.raises(ImproperlyConfigured, match="Install them: scripts/environment s3"):
        storage_config("s3://files", DATA, "exchange")
