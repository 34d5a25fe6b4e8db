"""The task `embed`: learn vectors of words; vectors of texts by models that read."""
