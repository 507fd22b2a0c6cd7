"""Mesh files: reading what others wrote, writing what others read, and distrusting both."""
