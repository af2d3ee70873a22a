"""The folders in which ACP agents work."""
