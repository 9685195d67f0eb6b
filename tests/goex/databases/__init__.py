"""Databases from the person's command to the database itself, through a real daemon."""
