"""What the project's own people run: generators and measurements. Not shipped, and never imported by the packages."""
