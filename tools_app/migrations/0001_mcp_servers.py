import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="McpServer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "key",
                    models.CharField(
                        help_text="Used in agents and in the API; cannot be changed.",
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9-]*\\Z", "Use lowercase letters, digits and '-'."
                            )
                        ],
                        verbose_name="ID",
                    ),
                ),
                ("title", models.CharField(max_length=100, verbose_name="name")),
                ("description", models.TextField(blank=True, default="")),
                (
                    "owner_id",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Blank: shared with every team.",
                        max_length=128,
                        verbose_name="team",
                    ),
                ),
                (
                    "transport",
                    models.CharField(
                        choices=[("http", "HTTP"), ("stdio", "Program on this machine (stdio)")],
                        default="http",
                        max_length=8,
                    ),
                ),
                ("url", models.CharField(blank=True, default="", max_length=500, verbose_name="URL")),
                ("encrypted_headers", models.TextField(blank=True, default="", editable=False)),
                ("header_names", models.JSONField(default=list, editable=False)),
                (
                    "command_key",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="A key of MCP_COMMANDS, for programs.",
                        max_length=64,
                        verbose_name="command",
                    ),
                ),
                (
                    "connect_timeout",
                    models.PositiveSmallIntegerField(
                        default=10,
                        help_text="Seconds to connect and to list the tools.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                    ),
                ),
                (
                    "call_timeout",
                    models.PositiveSmallIntegerField(
                        default=60,
                        help_text="Seconds that a call may take.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(600),
                        ],
                    ),
                ),
                (
                    "prefix",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Begins the names of the tools for models. Blank: the ID.",
                        max_length=40,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z][A-Za-z0-9_-]*\\Z", "Use letters, digits, '_' and '-'."
                            )
                        ],
                    ),
                ),
                (
                    "approval",
                    models.CharField(
                        choices=[
                            ("changes", "Tools that change something, as the server says"),
                            ("always", "Every tool"),
                        ],
                        default="changes",
                        max_length=16,
                        verbose_name="calls that need approval",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("tools", models.JSONField(default=dict, editable=False)),
                ("accepted", models.JSONField(default=dict, editable=False)),
                ("listed_at", models.DateTimeField(editable=False, null=True)),
                ("list_error", models.TextField(blank=True, default="", editable=False)),
                ("last_version_number", models.PositiveIntegerField(default=0, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "verbose_name": "MCP server",
                "ordering": ["title", "key"],
                "indexes": [models.Index(fields=["owner_id"], name="mcp_server_owner")],
            },
        ),
        migrations.CreateModel(
            name="McpServerVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version_number", models.PositiveIntegerField()),
                ("snapshot", models.JSONField()),
                ("author_name", models.CharField(blank=True, default="", max_length=150)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("code", "Code"),
                            ("page", "Editor"),
                            ("api", "API"),
                            ("admin", "Admin"),
                            ("import", "Import"),
                            ("restore", "Restore"),
                            ("task", "Task"),
                        ],
                        default="code",
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="tools_app.mcpserver"
                    ),
                ),
            ],
            options={
                "verbose_name": "version of an MCP server",
                "verbose_name_plural": "versions of MCP servers",
                "ordering": ["-version_number"],
                "constraints": [
                    models.UniqueConstraint(fields=("server", "version_number"), name="mcp_version_number")
                ],
            },
        ),
    ]
