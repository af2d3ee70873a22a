import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    """New wording of labels and help texts. No column changes."""

    dependencies = [
        ("runs_app", "0002_drop_messages"),
    ]

    operations = [
        migrations.AlterField(
            model_name="agentrun",
            name="agent_key",
            field=models.CharField(editable=False, max_length=256, verbose_name="agent ID"),
        ),
        migrations.AlterField(
            model_name="agentrun",
            name="configuration",
            field=models.JSONField(editable=False, help_text="The snapshot of the version, under wire names."),
        ),
        migrations.AlterField(
            model_name="agentrun",
            name="input",
            field=models.JSONField(editable=False, help_text="The messages and options of this run."),
        ),
        migrations.AlterField(
            model_name="agentrun",
            name="is_demo",
            field=models.BooleanField(default=False, editable=False, help_text="The built-in demo model answered."),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="aliases",
            field=models.JSONField(
                blank=True, default=list, help_text='Other keys of this provider: ["local", "internal"].'
            ),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="base_url",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Leave blank for the default of the dialect.",
                max_length=500,
                verbose_name="base URL",
            ),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="key",
            field=models.CharField(
                help_text="The part before the slash in provider/name. The key of a built-in provider replaces it.",
                max_length=64,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        "^[a-z0-9][a-z0-9._-]*\\Z", "Use lowercase letters, digits, '.', '_' and '-'."
                    )
                ],
            ),
        ),
        migrations.AlterField(
            model_name="modelprovider",
            name="names",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text='Models that the editor offers: ["llama-4-scout"].',
                verbose_name="models",
            ),
        ),
        migrations.AlterField(
            model_name="thread",
            name="agent_key",
            field=models.CharField(editable=False, max_length=256, verbose_name="agent ID"),
        ),
        migrations.AlterField(
            model_name="thread",
            name="key",
            field=models.CharField(
                editable=False, help_text="Chosen by the API client.", max_length=256, verbose_name="thread ID"
            ),
        ),
    ]
