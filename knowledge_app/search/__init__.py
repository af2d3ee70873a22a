"""Searches of knowledge bases: filters, ranking and the passages that models read."""
