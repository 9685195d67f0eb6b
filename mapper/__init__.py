"""From an intent to calls: the catalog, retrieval, proposals, the vote, least scopes."""
