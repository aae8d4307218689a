"""Commands of `mxjob`, one file each, with their options."""
