"""What a program calls, found without running it."""
