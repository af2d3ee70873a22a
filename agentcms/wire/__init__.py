"""JSON as we store and send it."""
