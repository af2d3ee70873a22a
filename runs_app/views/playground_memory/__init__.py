"""Conversations and callers of the playground: which thread a column continues, and as whom it is asked."""
