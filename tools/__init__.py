"""What maintainers run; not part of the package."""
