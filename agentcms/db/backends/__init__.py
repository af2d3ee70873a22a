"""Django's two databases, each with one thing that ours needs."""
