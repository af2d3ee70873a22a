from django.db import migrations, models

import access_app.models


class Migration(migrations.Migration):
    """New wording of labels and help texts. No column changes."""

    dependencies = [
        ("access_app", "0003_sign_in_attempt"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apikey",
            name="role",
            field=models.CharField(
                blank=True,
                choices=[
                    ("viewer", "Viewer"),
                    ("editor", "Editor"),
                    ("publisher", "Publisher"),
                    ("manager", "Manager"),
                ],
                help_text="The highest role of the key. Blank is the same as its user.",
                max_length=16,
            ),
        ),
        migrations.AlterField(
            model_name="membership",
            name="owner_id",
            field=models.CharField(
                blank=True,
                help_text="Blank is Shared.",
                max_length=128,
                validators=[access_app.models.printable_id],
                verbose_name="team",
            ),
        ),
    ]
