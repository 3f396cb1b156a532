"""One small file a section: `TITLE`, and `context(study)` for the template of the same name, or None for none."""
