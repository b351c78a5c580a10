"""What is kept: a node's day, its file, and the store of them."""
