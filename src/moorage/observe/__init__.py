"""What a running scheduler tells about itself: metrics, under kube-scheduler's names.

Belongs here: the table of metrics (`catalogue`), the numbers behind it (`series`, cheap enough to
be written on the way), what the queue, the attempts and the calls report (`queue_facts`,
`attempts`, `calls`), and how it is all written for Prometheus (`exposition`, `resources`). It
reads; it holds no way to write to the API.
"""
