"""Many nodes and many months: a store of what each node's checkpoints took on each day, merged into
jobs, and jobs into a fleet."""
