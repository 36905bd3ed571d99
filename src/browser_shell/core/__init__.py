"""Values and protocols that all packages share. No input, no output."""
