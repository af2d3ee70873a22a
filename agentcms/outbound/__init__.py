"""Connections to addresses that users name: models today, and whatever else is reached over HTTP."""
