"""Methods that a user would compare with: no transfer, or the transfer of earlier papers."""
