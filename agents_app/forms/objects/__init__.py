"""Inputs of a JSON object in a form: for known members, for other members, and for the properties of a schema."""
