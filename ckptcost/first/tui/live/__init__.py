"""The live screen: where readings come from, what is made of them, and the picture."""
