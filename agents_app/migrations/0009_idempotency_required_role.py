from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the role that a replay of a response needs. Rows without it are not replayed."""

    dependencies = [
        ("agents_app", "0008_idempotency_record"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotencyrecord",
            name="owner_id",
            field=models.CharField(db_default="", default="", max_length=128),
        ),
        migrations.AddField(
            model_name="idempotencyrecord",
            name="role",
            field=models.CharField(max_length=16, null=True),
        ),
    ]
