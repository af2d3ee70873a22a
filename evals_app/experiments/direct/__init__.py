"""Experiments over targets that are called without a run: workflows and scorers."""
