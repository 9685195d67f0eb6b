"""Services of the tests' own that speak the protocols of the bundled manifests over HTTPS, and keep state."""
