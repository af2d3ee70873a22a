"""Encryption of secrets that the database stores."""

from agentcms.db.encryption import decrypt, encrypt


def test_a_secret_is_read_for_its_purpose_only():
    token = encrypt("sesame", "keys of servers")

    assert "sesame" not in token
    assert decrypt(token, "keys of servers") == "sesame"
    assert decrypt(token, "keys of model providers") is None


def test_another_secret_reads_nothing(settings):
    token = encrypt("sesame", "keys of servers")
    settings.PROVIDER_KEY_SECRET = "another"

    assert decrypt(token, "keys of servers") is None


def test_the_old_secret_still_decrypts(settings):
    token = encrypt("sesame", "keys of servers")
    settings.PROVIDER_KEY_SECRET, settings.PROVIDER_KEY_SECRET_OLD = "another", settings.PROVIDER_KEY_SECRET

    assert decrypt(token, "keys of servers") == "sesame"
    assert decrypt(encrypt("new", "keys of servers"), "keys of servers") == "new"

    settings.PROVIDER_KEY_SECRET_OLD = "a third"
    assert decrypt(token, "keys of servers") is None
