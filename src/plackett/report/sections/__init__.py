"""One small file a section: `TITLE`, and `context(material)` for the template of the same name, or None for none.

Every `Plate` and `Table` in a context also becomes a file beside the page.
"""
