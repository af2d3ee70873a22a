"""The command that encrypts stored secrets with a new PROVIDER_KEY_SECRET."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentcms.db.encryption import PROVIDER_KEYS, decrypt, encrypt
from runs_app.models import ModelProvider
from tools_app.models import AcpAgent, McpServer
from tools_app.models.acp_agent import ENVIRONMENT_VALUES

pytestmark = pytest.mark.django_db


def create_rows():
    provider = ModelProvider(key="house", title="House", base_url="https://models.example.org/v1")
    provider.set_secret("sesame")
    provider.save()
    server = McpServer(key="office", title="Office", url="https://mcp.example.org/mcp")
    server.set_headers({"X-Key": "open"})
    server.save()
    ModelProvider.objects.create(key="free", title="Without a key", base_url="https://free.example.org/v1")
    variables = encrypt('{"TOKEN": "secret"}', ENVIRONMENT_VALUES)
    AcpAgent.objects.bulk_create(
        [AcpAgent(key="coder", title="Coder", command_key="coder", encrypted_environment=variables)]
    )


def use_new_secret(settings, old=""):
    settings.PROVIDER_KEY_SECRET, settings.PROVIDER_KEY_SECRET_OLD = "another", old


def test_all_secrets_are_read_without_the_old_secret_afterwards(settings):
    create_rows()
    use_new_secret(settings, old=settings.PROVIDER_KEY_SECRET)

    out = StringIO()
    call_command("reencrypt_secrets", stdout=out)

    use_new_secret(settings)
    assert out.getvalue() == "Encrypted 3 secrets again.\n"
    assert decrypt(ModelProvider.objects.get(key="house").encrypted_key, PROVIDER_KEYS) == "sesame"
    assert McpServer.objects.get().headers == {"X-Key": "open"}
    assert AcpAgent.objects.get().environment == {"TOKEN": "secret"}
    assert ModelProvider.objects.get(key="free").encrypted_key == ""


def test_a_secret_that_cannot_be_read_is_named_and_stays(settings):
    create_rows()
    before = ModelProvider.objects.get(key="house").encrypted_key
    McpServer.objects.update(encrypted_headers="")
    AcpAgent.objects.update(encrypted_environment="")
    use_new_secret(settings)

    with pytest.raises(CommandError, match=r"decrypts: model provider 'House'\. Enter these"):
        call_command("reencrypt_secrets", stdout=StringIO())

    assert ModelProvider.objects.get(key="house").encrypted_key == before


def test_the_large_definitions_of_tools_are_not_read():
    create_rows()

    with CaptureQueriesContext(connection) as queries:
        call_command("reencrypt_secrets", stdout=StringIO())

    assert not [query["sql"] for query in queries if '"tools"' in query["sql"]]
