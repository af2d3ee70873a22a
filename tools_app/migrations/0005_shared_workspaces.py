"""Allow a blank team of a workspace, which is Shared. The column stays as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tools_app", "0004_definitions_accepted_for_all")]

    operations = [
        migrations.AlterField(
            model_name="acpworkspace",
            name="owner_id",
            field=models.CharField(
                blank=True, help_text="The team whose agents work in it.", max_length=128, verbose_name="team"
            ),
        ),
    ]
