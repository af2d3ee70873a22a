from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("versions_app", "0005_reword_source_and_retention_rule"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="activation",
            options={"ordering": ["-id"], "verbose_name": "live history entry", "verbose_name_plural": "live history"},
        ),
    ]
