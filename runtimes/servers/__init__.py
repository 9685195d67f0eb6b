"""MCP servers as services: their packages, their containers, their calls."""
