"""Formats of dates by language. Django uses them in the admin."""
