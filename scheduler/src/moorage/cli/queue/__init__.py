"""``moorage queue``: where pods wait and until when."""
