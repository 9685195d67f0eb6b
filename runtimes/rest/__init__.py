"""Catalogued calls over REST: run through the gateway, taken back by the reversion set."""
