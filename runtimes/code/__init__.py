"""Programs that use services: what they may call, and how they are run without a credential."""
