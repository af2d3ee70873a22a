"""The secret that a first start creates in the data folder."""

import pytest

from agentcms import environment
from agentcms.environment import load_or_create_secret, write_secret


def test_a_secret_is_created_once_for_this_user_only(tmp_path):
    path = tmp_path / "data" / "secret_key"

    secret = load_or_create_secret(path)

    assert len(secret) >= 48
    assert load_or_create_secret(path) == secret
    assert path.stat().st_mode & 0o777 == 0o600
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("text", ["", "\n"])
def test_a_blank_secret_is_replaced(tmp_path, text):
    path = tmp_path / "secret_key"
    path.write_text(text)

    secret = load_or_create_secret(path)

    assert len(secret) >= 48
    assert path.read_text() == secret


@pytest.mark.parametrize("is_blank", [False, True])
def test_a_secret_that_another_process_creates_meanwhile_is_kept(tmp_path, monkeypatch, is_blank):
    path = tmp_path / "secret_key"
    if is_blank:
        path.touch()

    def write_late(temporary, secret):
        write_secret(temporary, secret)
        path.write_text("the secret of the other process")

    monkeypatch.setattr(environment, "write_secret", write_late)

    assert load_or_create_secret(path) == "the secret of the other process"
    assert path.read_text() == "the secret of the other process"
