"""Which services and methods a request may mean: ranking over everything that is imported or bundled."""
