"""The report: one versioned document, and its views. Every output is a function of it."""
