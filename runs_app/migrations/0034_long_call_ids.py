"""Background tasks store the whole ID of their call, however long a provider makes it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs_app", "0033_fill_own_resource_of_approvals"),
    ]

    operations = [
        migrations.AlterField(
            model_name="backgroundtask",
            name="call_id",
            field=models.TextField(editable=False, help_text="As the model gave it."),
        ),
    ]
