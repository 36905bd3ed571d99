"""Pure rules: the grammar of calls and the places that the browser may reach."""
