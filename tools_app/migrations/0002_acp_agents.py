import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory_app", "0004_unique_keys"),
        ("runs_app", "0018_index_suspended_runs_of_users"),
        ("tools_app", "0001_mcp_servers"),
    ]

    operations = [
        migrations.CreateModel(
            name="AcpAgent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "key",
                    models.CharField(
                        help_text="Agents name it acp-ID; cannot be changed.",
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
                (
                    "description",
                    models.TextField(
                        blank=True, default="", help_text="Its purpose. The models that may call it read this."
                    ),
                ),
                (
                    "command_key",
                    models.CharField(help_text="A key of ACP_COMMANDS.", max_length=64, verbose_name="command"),
                ),
                ("encrypted_environment", models.TextField(blank=True, default="", editable=False)),
                ("environment_names", models.JSONField(default=list, editable=False)),
                (
                    "auth_method_id",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The ID of a method that the agent offers. Blank: none is needed.",
                        max_length=128,
                        verbose_name="authentication method",
                    ),
                ),
                (
                    "persists_session",
                    models.BooleanField(
                        default=True,
                        help_text="One process and session for each conversation, for 10 minutes.",
                        verbose_name="keep the session",
                    ),
                ),
                (
                    "permissions",
                    models.CharField(
                        choices=[
                            ("ask", "Ask a person"),
                            ("allow_reads", "Allow reading, ask for the rest"),
                            ("first_option", "Choose the first option"),
                            ("reject", "Reject"),
                        ],
                        default="ask",
                        max_length=16,
                    ),
                ),
                ("limits", models.JSONField(blank=True, default=dict)),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The ID of a model of the agent. Blank: its own choice.",
                        max_length=128,
                    ),
                ),
                (
                    "workspace",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The name of a workspace of the team. Blank: a folder for each conversation.",
                        max_length=64,
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("last_version_number", models.PositiveIntegerField(default=0, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "verbose_name": "ACP agent",
                "ordering": ["title", "key"],
            },
        ),
        migrations.CreateModel(
            name="AcpWorkspace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "owner_id",
                    models.CharField(
                        help_text="The team whose agents work in it.", max_length=128, verbose_name="team"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]*\\Z", "Use lowercase letters, digits, '-' and '_'."
                            )
                        ],
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "verbose_name": "workspace of ACP agents",
                "verbose_name_plural": "workspaces of ACP agents",
                "ordering": ["owner_id", "name"],
                "constraints": [models.UniqueConstraint(fields=("owner_id", "name"), name="acp_workspace_name")],
            },
        ),
        migrations.CreateModel(
            name="AcpAgentVersion",
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
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="versions", to="tools_app.acpagent"
                    ),
                ),
            ],
            options={
                "verbose_name": "version of an ACP agent",
                "verbose_name_plural": "versions of ACP agents",
                "ordering": ["-version_number"],
                "constraints": [
                    models.UniqueConstraint(fields=("agent", "version_number"), name="acp_version_number")
                ],
            },
        ),
        migrations.CreateModel(
            name="AcpPermission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("mark", models.CharField(max_length=64)),
                ("title", models.CharField(max_length=200)),
                ("option_kind", models.CharField(max_length=32, verbose_name="answer")),
                (
                    "decided_by_name",
                    models.CharField(blank=True, default="", max_length=150, verbose_name="decided by"),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="granted_permissions",
                        to="tools_app.acpagent",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memory_app.thread"
                    ),
                ),
            ],
            options={
                "verbose_name": "permission of an ACP agent",
                "verbose_name_plural": "permissions of ACP agents",
                "ordering": ["-created_at"],
                "constraints": [
                    models.UniqueConstraint(fields=("thread", "agent", "mark"), name="acp_permission_of_thread")
                ],
            },
        ),
        migrations.CreateModel(
            name="AcpPrompt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="runs_app.agentrun"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("run", "number"), name="acp_prompt_once")],
            },
        ),
        migrations.CreateModel(
            name="AcpSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version_number", models.PositiveIntegerField()),
                ("session_id", models.CharField(max_length=256)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sessions", to="tools_app.acpagent"
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memory_app.thread"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("thread", "agent"), name="acp_session_of_thread")],
            },
        ),
    ]
