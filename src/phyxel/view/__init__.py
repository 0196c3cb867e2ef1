"""The browser: a running world, or a finished run, on a page that can be touched."""
