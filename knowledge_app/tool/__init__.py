"""The tool `search-<base>` with which agents search a knowledge base."""
