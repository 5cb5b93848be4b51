"""Times that users write: Go durations, and the schedules of CronJobs."""
