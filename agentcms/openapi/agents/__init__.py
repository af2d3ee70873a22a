"""Agents in the API document: their versions, export and import."""
