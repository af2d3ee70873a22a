"""Base classes and functions that the admin pages of all applications share."""
