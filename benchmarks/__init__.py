"""What the application takes and how fast it is, measured; `make benchmark` runs this."""

TEXT = "You are a careful assistant of the support team. Answer from the knowledge base and cite the article. " * 11
