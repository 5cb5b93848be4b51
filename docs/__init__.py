"""The documents, and the program that writes the generated ones (`docs.generate`)."""
