"""Foreign formats, one file each: a statement goes in, text for somebody else's software comes
out."""
