"""Questions: one typed function each, called by the command line and by Python alike."""
