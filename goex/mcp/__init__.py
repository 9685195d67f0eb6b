"""The MCP server: a client of agent.sock, which decides nothing."""
