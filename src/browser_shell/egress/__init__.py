"""What leaves the box."""
