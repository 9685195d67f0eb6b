"""Measures what GoEx accepts of other people's material. Not shipped."""
