"""Importers: documents of others, read strictly into the catalog's file."""
