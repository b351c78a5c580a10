"""Domain results to studies, one module a command."""
