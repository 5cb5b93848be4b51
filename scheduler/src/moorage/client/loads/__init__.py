"""Sources of the loads of nodes (`sources`): what is asked, and what the answers say."""
