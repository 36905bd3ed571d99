"""The tools as clients see them, and the step from arguments to a plan."""
