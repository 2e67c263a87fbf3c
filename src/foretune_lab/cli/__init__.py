"""The laboratory's commands, as plug-ins of the command line."""
