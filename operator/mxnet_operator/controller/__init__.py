"""The loop: what the caches show goes through the queue to a plan, and the plan is carried out."""
