"""Questions a task, replayed from ground truth that others wrote: `make replay` writes replay.json."""
