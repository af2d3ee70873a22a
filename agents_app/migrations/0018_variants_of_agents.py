from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents_app", "0017_knowledge_of_agents"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="conditional",
            field=models.JSONField(
                blank=True,
                help_text='{"model": [{"value": …, "rules": {"operator": "AND", "conditions": […]}}]}',
                null=True,
                verbose_name="variants",
            ),
        ),
        migrations.AddField(
            model_name="agent",
            name="context_keys",
            field=models.JSONField(
                blank=True,
                help_text="Names of claims that the rules of variants may read.",
                null=True,
                verbose_name="context keys",
            ),
        ),
    ]
