"""The command for the first user, for the terminal and the sign-in page. It imports nothing, for a fast start."""

FIRST_USER_COMMAND = ".venv/bin/python manage.py create_user NAME --superuser"
NO_USERS_FILE = "no_users"  # a marker in DATA_DIR: there was no user at the last start
