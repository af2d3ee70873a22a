"""Memory in the API document: threads, messages, working memory and signals."""
