"""One page of HTML for people: drawn from statements and from what the caller adds, with no script
and nothing to load."""
