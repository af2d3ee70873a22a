"""Model providers, and the private networks that models and tools may reach."""

from agentcms import environment
from agentcms.settings.security import SECRET_KEY

# API keys of the built-in model providers, and base URLs that replace their defaults.
MODEL_KEYS = {
    "openai": environment.read_text("OPENAI_API_KEY"),
    "anthropic": environment.read_text("ANTHROPIC_API_KEY"),
    "google": environment.read_text("GOOGLE_API_KEY"),
    "mistral": environment.read_text("MISTRAL_API_KEY"),
}
MODEL_URLS = {
    "openai": environment.read_url("OPENAI_BASE_URL", "http", "https"),
    "anthropic": environment.read_url("ANTHROPIC_BASE_URL", "http", "https"),
    "google": environment.read_url("GOOGLE_BASE_URL", "http", "https"),
    "mistral": environment.read_url("MISTRAL_BASE_URL", "http", "https"),
}
# Settings of models that editors may use in addition to those of the dialect, as provider:setting.
MODEL_ALLOWED_SETTINGS = environment.read_list("MODEL_ALLOWED_SETTINGS")
# The largest answer of a model provider to one request, in bytes.
MODEL_MAX_ANSWER = environment.read_int("MODEL_MAX_ANSWER_MB", 16, minimum=1, maximum=1024) * 1024 * 1024
# Connections to private addresses are refused unless their network is listed here. MODEL_NETWORKS is the earlier name.
OUTBOUND_NETWORKS = environment.read_networks("OUTBOUND_NETWORKS") + environment.read_networks("MODEL_NETWORKS")
# Encrypts the stored API keys of model providers. The old one reads what it encrypted, until
# `manage.py reencrypt_secrets` has run.
PROVIDER_KEY_SECRET = environment.read_text("PROVIDER_KEY_SECRET") or SECRET_KEY
PROVIDER_KEY_SECRET_OLD = environment.read_text("PROVIDER_KEY_SECRET_OLD")
