"""A whole Kubernetes of one node: real kubelet, containerd, runc, CoreDNS, in namespaces of its own.

`images` builds the project's images, `node` starts and ends the node, `first_process` is what runs inside,
`configuration` what its programs read.
"""
