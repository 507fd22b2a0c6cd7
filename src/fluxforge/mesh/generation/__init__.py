"""Making meshes: structured families, and unstructured triangles of a domain."""
