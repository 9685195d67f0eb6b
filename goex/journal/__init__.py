"""The journal: what happened, written before it happens, so that an edit or a cut tail shows."""
