import django.core.validators
from django.db import migrations, models

import access_app.models


class Migration(migrations.Migration):
    dependencies = [
        ("versions_app", "0004_fewer_indexes"),
    ]

    operations = [
        migrations.AlterField(
            model_name="activation",
            name="source",
            field=models.CharField(
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
                editable=False,
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="agentversion",
            name="source",
            field=models.CharField(
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
                editable=False,
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Older versions are removed every night. The default is AGENT_VERSION_DAYS.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
                verbose_name="max age in days",
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="owner_id",
            field=models.CharField(
                blank=True,
                help_text="Leave blank for Shared.",
                max_length=128,
                unique=True,
                validators=[access_app.models.printable_id],
                verbose_name="team",
            ),
        ),
        migrations.AlterField(
            model_name="retentionrule",
            name="versions",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Per agent. The default is AGENT_VERSION_LIMIT.",
                null=True,
                validators=[django.core.validators.MinValueValidator(5)],
                verbose_name="max versions",
            ),
        ),
    ]
