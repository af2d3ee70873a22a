from django.db import migrations


class Migration(migrations.Migration):
    """Rename the model. Its table keeps its name, so that the release before can still serve from it."""

    dependencies = [
        ("access_app", "0002_sign_in_tries"),
    ]

    operations = [
        migrations.AlterModelTable(name="signintries", table="access_app_signintries"),
        migrations.RenameModel(old_name="SignInTries", new_name="SignInAttempt"),
    ]
