"""Offline evaluations against published data: nothing here calls a model or a service."""
