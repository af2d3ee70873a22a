"""Scorers: records of judges, checks, trajectories and pipelines, and scores by them."""
