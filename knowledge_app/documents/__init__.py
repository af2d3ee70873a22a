"""Documents: adding them, the extraction of their text, and its division into chunks."""
