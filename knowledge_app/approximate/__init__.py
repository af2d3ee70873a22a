"""Approximate indexes (HNSW) of large knowledge indexes, in PostgreSQL with pgvector."""
