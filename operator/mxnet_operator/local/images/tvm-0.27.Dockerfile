# The image mxjob/tvm:0.27 for a Kubernetes cluster, from the lock that the local cluster installs.
#   docker build -t mxjob/tvm:0.27 -f tvm-0.27.Dockerfile .
# g++ because an RPC server links each candidate that it is sent; the local cluster uses the machine's.
# It runs as root, so that images made from it can install; those of the examples run as 65532.
ARG PYTHON=3.11-slim-bookworm
FROM python:${PYTHON}
LABEL org.opencontainers.image.title="tvm" \
      org.opencontainers.image.description="TVM 0.27 for MXJobs that tune, from a lock with hashes" \
      org.opencontainers.image.version="0.27" \
      org.opencontainers.image.licenses="Apache-2.0"
# What is removed has times in it, and nothing reads it.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig /var/log/apt /var/log/*.log
COPY tvm-0.27.txt /usr/local/share/mxjob/
# With SOURCE_DATE_EPOCH compiled files hold a hash of their source instead of its time.
RUN SOURCE_DATE_EPOCH=315532800 pip install --no-cache-dir --root-user-action=ignore --require-hashes \
        -r /usr/local/share/mxjob/tvm-0.27.txt \
    && python -B -c "import tvm"
