"""Dashboard: web pages of all jobs and of each job, live, for the local cluster and any kubeconfig."""
