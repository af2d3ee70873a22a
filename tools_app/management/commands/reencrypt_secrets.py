"""The command that encrypts stored secrets with a new PROVIDER_KEY_SECRET."""

from collections.abc import Iterator

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model

from agentcms.db.encryption import PROVIDER_KEYS, decrypt, encrypt
from agentcms.plural import pluralize
from runs_app.models import ModelProvider
from tools_app.models import AcpAgent, McpServer
from tools_app.models.acp_agent import ENVIRONMENT_VALUES
from tools_app.models.mcp_server import HEADER_VALUES

ENCRYPTED_COLUMNS: tuple[tuple[type[Model], str, str], ...] = (
    (ModelProvider, "encrypted_key", PROVIDER_KEYS),
    (McpServer, "encrypted_headers", HEADER_VALUES),
    (AcpAgent, "encrypted_environment", ENVIRONMENT_VALUES),
)


class Command(BaseCommand):
    help = """Encrypts the keys of model providers, headers of MCP servers and environments of ACP agents again, with
    PROVIDER_KEY_SECRET. Reads those that were encrypted with PROVIDER_KEY_SECRET_OLD, which is no longer needed
    afterwards. May be repeated."""

    def handle(self, *args: object, **options: object) -> None:
        results = [*reencrypt_all()]
        unreadable = [name for name, is_readable in results if not is_readable]
        self.stdout.write(f"Encrypted {pluralize(len(results) - len(unreadable), 'secret')} again.")
        if unreadable:
            raise CommandError(
                f"Neither PROVIDER_KEY_SECRET nor PROVIDER_KEY_SECRET_OLD decrypts: {', '.join(unreadable)}. "
                "Enter these secrets again in the admin."
            )


def reencrypt_all() -> Iterator[tuple[str, bool]]:
    """Encrypt each stored secret again. Yield the name of its row, and whether the secret could be read."""
    for model, column, purpose in ENCRYPTED_COLUMNS:
        rows = model._default_manager.exclude(**{column: ""}).order_by("pk")
        # Not all columns: the definitions of the tools of an MCP server are large.
        for row in rows.only("key", "title", column).iterator(chunk_size=100):
            token = getattr(row, column)
            text = decrypt(token, purpose)
            if text is not None:
                # Only if the row still has this secret: somebody may enter another one meanwhile.
                rows.filter(pk=row.pk, **{column: token}).update(**{column: encrypt(text, purpose)})
            yield f"{model._meta.verbose_name} '{row}'", text is not None
