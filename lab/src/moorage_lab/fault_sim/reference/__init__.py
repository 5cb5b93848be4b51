"""The rules of kube-scheduler's plugins a second time: API objects in, plain loops, no columns.

Nothing is kept between questions, and nothing of the scheduler's own rooms decides here. Judges of
whole attempts stand in `moorage_lab.fault_sim.invariants`.
"""
