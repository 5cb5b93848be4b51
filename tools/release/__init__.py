"""What a release needs: version, changelog, bill of materials, licences of the dependencies."""
