"""A program that prints for which environment its settings are, for the tests of forks."""

import json
import os
import sys

IS_LOADED = "agentcms.settings" in sys.modules


def report() -> dict[str, object]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentcms.settings")
    from django.conf import settings

    return {
        "loaded": IS_LOADED,
        "data": str(settings.DATA_DIR),
        "hosts": settings.ALLOWED_HOSTS,
        "metrics": [path.name for path in settings.DATA_DIR.glob("metrics/*.db")],  # of the supervisor
    }


if __name__ == "__main__":
    print(json.dumps(report()))
