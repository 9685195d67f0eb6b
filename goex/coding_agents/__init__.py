"""Hooks and configuration of coding agents: clients of agent.sock, which decide nothing."""
