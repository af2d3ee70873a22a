from django.db import migrations


class Migration(migrations.Migration):
    """Rename the model. Its table keeps its name, so that the release before can still serve from it."""

    dependencies = [
        ("agents_app", "0007_fewer_indexes"),
    ]

    operations = [
        migrations.AlterModelTable(name="keptanswer", table="agents_app_keptanswer"),
        migrations.RenameModel(old_name="KeptAnswer", new_name="IdempotencyRecord"),
    ]
