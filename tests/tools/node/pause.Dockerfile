# What keeps a pod's namespaces: it sleeps, collects the dead, and ends when it is asked to.
FROM scratch
COPY root /
USER 65535:65535
ENTRYPOINT ["/bin/busybox", "sh", "-c", "trap 'exit 0' TERM INT; while :; do /bin/busybox sleep 86400 & wait; done"]
