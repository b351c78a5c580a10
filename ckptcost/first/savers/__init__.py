"""Programs that really write a checkpoint and read it back."""
