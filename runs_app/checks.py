"""What must hold before anything runs; see `agentcms/checks.py` for the settings of the others."""
