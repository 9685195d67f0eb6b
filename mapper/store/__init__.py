"""The imported services: one SQLite file, read lazily."""
