"""The page around noVNC, and what it is told besides the picture."""
