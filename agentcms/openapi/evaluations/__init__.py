"""Evaluations in the API document: datasets, experiments and scorers."""
