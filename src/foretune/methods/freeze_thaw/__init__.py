"""Transfer freeze-thaw: what past curves say about the next steps of a trial."""
