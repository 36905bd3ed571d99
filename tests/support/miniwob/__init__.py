"""Solvers of the MiniWoB pages. They use the tool's commands and answers only, as an agent would."""
