"""The secret that a first start creates in the data folder."""

import pytest

from agentcms.environment import load_or_create_secret


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
