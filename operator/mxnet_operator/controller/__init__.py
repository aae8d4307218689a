"""The control loop: caches feed a work queue, each key is planned for, and an executor carries the plan out."""
