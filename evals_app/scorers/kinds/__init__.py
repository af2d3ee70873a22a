"""The kinds of scorers. Each module has a function that scores an answer by a configuration."""
