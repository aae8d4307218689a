"""A whole Kubernetes of one node: real kubelet, containerd, runc, CoreDNS, in namespaces of its own.

`debian` unpacks what Debian has, `images` builds the project's images with it, `node` starts and ends the node,
`first_process` is what runs inside, `configuration` what its programs read.
"""
