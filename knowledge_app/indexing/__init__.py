"""Indexing: the jobs that fill the indexes of knowledge bases."""
