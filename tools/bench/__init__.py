"""What GoEx costs, measured beside what could not be done faster: `make bench`."""
