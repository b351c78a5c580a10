"""From node-days to jobs: which files count, whose clock is off, who waited for whom; on one
machine or many."""
