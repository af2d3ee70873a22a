from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0005_fill_agent_owner"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelprovider",
            name="allowed_settings",
            field=models.JSONField(
                blank=True,
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Settings of models that editors may use too, although some reach what the provider stores "
                'for all users of the API key: ["googleCachedContent", "extraBody.min_p"].',
            ),
        ),
    ]
