"""The top of the house, which wires the apps together."""
