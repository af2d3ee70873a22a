"""The programs of ACP agents: their processes, and the protocol over their pipes."""
