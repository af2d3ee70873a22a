"""What the admin pages of all applications share."""
