"""Static files, stored files and uploads."""

from agentcms import environment
from agentcms.backends.storage import storage_config
from agentcms.settings.paths import BASE_DIR, DATA_DIR

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGE_URL = environment.read_url("STORAGE_URL", "s3")
STORAGES: dict[str, dict[str, object]] = {
    "default": storage_config(STORAGE_URL, DATA_DIR, "files"),
    "exchange": storage_config(STORAGE_URL, DATA_DIR, "exchange"),
    "staticfiles": {"BACKEND": "agentcms.web.static_files.StaticFilesStorage"},
}
# Names with a hash, of Django or of the bundled editor (chunk-1A2B3C4D.js), never get another content.
WHITENOISE_IMMUTABLE_FILE_TEST = r"(\.[0-9a-f]{12}|-[0-9A-Z]{8})\.\w+$"
WHITENOISE_ALLOW_ALL_ORIGINS = False  # only the pages of this site load them, each of which has thirty
FILE_UPLOAD_TEMP_DIR = DATA_DIR / "tmp"  # beside local files, so that a finished file is moved and not copied
# The wire protocol fixes this limit: a larger body is a 413.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_718_592  # 4.5 MB
# The editor sends a field for each tool that a team may choose, and more for each chosen one. A single MCP server may
# have 500 tools, so the default of 1,000 is too low.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000
FILE_UPLOAD_HANDLERS: list[str] = []  # only views with `accepts_upload` receive files
