"""From merged jobs to figures: the bill, failures, goodput, what is missing, what would have been
saved."""
