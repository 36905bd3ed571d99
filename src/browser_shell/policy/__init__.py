"""Pure rules: what a call may say and where the browser may go."""
