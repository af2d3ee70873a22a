"""JSON as it is stored and sent."""
