"""Hand-overs between replicas, measured with processes: plan, load, replicas, records."""
