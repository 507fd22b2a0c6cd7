"""What makes a list of points and cells a mesh."""
