"""Methods that papers compare with, as plug-ins."""
