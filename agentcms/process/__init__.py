"""The life of one process: what ends it, and what runs before it ends."""
