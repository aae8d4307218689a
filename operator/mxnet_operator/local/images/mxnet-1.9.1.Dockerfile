# The image mxjob/mxnet:1.9.1 for a Kubernetes cluster, from the lock that the local cluster installs.
#   docker build -t mxjob/mxnet:1.9.1 -f mxnet-1.9.1.Dockerfile .
# It runs as root, so that images made from it can install; those of the examples run as 65532.
ARG PYTHON=3.11-slim-bookworm
FROM python:${PYTHON}
LABEL org.opencontainers.image.title="mxnet" \
      org.opencontainers.image.description="MXNet 1.9.1 for MXJobs, from a lock with hashes" \
      org.opencontainers.image.version="1.9.1" \
      org.opencontainers.image.licenses="Apache-2.0"
# libmxnet.so links both; what is removed has times in it, and nothing reads it.
RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1 libquadmath0 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig /var/log/apt /var/log/*.log
COPY mxnet-1.9.1.txt /usr/local/share/mxjob/
# With SOURCE_DATE_EPOCH compiled files hold a hash of their source instead of its time.
RUN SOURCE_DATE_EPOCH=315532800 pip install --no-cache-dir --root-user-action=ignore --require-hashes \
        -r /usr/local/share/mxjob/mxnet-1.9.1.txt \
    && python -B -c "import mxnet"
