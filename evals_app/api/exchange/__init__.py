"""API views by which items come into a dataset and leave it: files, and runs."""
