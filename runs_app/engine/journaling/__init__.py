"""The steps of durable runs, which another process does not execute again."""
