"""Statements on a person's database: checked, bounded, in one transaction, taken back exactly or refused."""
