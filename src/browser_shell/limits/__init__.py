"""How much a subject may use a tool: rate, quota, concurrency, and the budget of a task."""
