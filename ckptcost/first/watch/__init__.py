"""Where checkpoints begin and end, without a change to the job: files, processes, output."""
