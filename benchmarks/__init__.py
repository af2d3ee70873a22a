"""Measurements of speed, CPU and memory. `make benchmark` runs them."""

TEXT = "You are a careful assistant of the support team. Answer from the knowledge base and cite the article. " * 11
